#!/usr/bin/env bash
# Makes the repository that the evaluation tasks ask about: fixed names, dates and contents.
#   evals/fixture.sh FOLDER
set -euo pipefail
cd "$1"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
git init --quiet --initial-branch=main .

commit() { # commit "Author Name" email date "subject"
  git add --all
  GIT_AUTHOR_NAME=$1 GIT_AUTHOR_EMAIL=$2 GIT_AUTHOR_DATE=$3 \
  GIT_COMMITTER_NAME=$1 GIT_COMMITTER_EMAIL=$2 GIT_COMMITTER_DATE=$3 git commit --quiet --message "$4"
}
ada=("Ada Lovelace" ada@example.com)
grace=("Grace Hopper" grace@example.com)
linus=("Linus Berg" linus@example.com)

mkdir -p config src deploy logs data
printf '# Shop\n\nThe shop backend.\n\nRun `deploy/deploy.sh`.\n' > README.md
printf 'name = "shop"\nport = 8080\nlog_level = "info"\n' > config/app.toml
commit "${ada[@]}" 2026-01-05T09:00:00+00:00 "Start the shop"

printf 'def main():\n    # TODO: read the configuration\n    print("shop")\n' > src/app.py
commit "${ada[@]}" 2026-01-06T10:00:00+00:00 "Add the entry point"

printf 'retry_limit = 3\n\ndef charge(amount):\n    # TODO: handle currencies\n    return amount > 0\n' > src/payment.py
commit "${grace[@]}" 2026-01-07T11:00:00+00:00 "Add payments"

printf 'def total(orders):\n    return sum(order["price"] for order in orders)\n' > src/orders.py
commit "${grace[@]}" 2026-01-08T12:00:00+00:00 "Add orders"
git tag v1.0

printf '#!/bin/sh\nset -e\nsystemctl restart shop\n' > deploy/deploy.sh
commit "${linus[@]}" 2026-01-09T13:00:00+00:00 "Add the deploy script"

git branch fix/timeout
printf 'name = "shop"\nport = 8080\nlog_level = "debug"\ntimeout_s = 30\n' > config/app.toml
commit "${linus[@]}" 2026-01-12T14:00:00+00:00 "Log more and set a timeout"

printf 'name,port,owner,replicas\nweb,8080,ada,3\nmetrics,9090,grace,1\nqueue,5672,linus,2\n' > data/services.csv
commit "${ada[@]}" 2026-01-13T15:00:00+00:00 "List the services"

for hour in 01 02 03 04 05 06 07 08 09 10; do
  printf '2026-01-13T%s:00:00 INFO request served\n' "$hour"
  case $hour in 02|05|09) printf '2026-01-13T%s:30:00 ERROR payment gateway timeout\n' "$hour" ;; esac
  case $hour in 07|10) printf '2026-01-13T%s:45:00 WARN slow query\n' "$hour" ;; esac
done > logs/app.log
commit "${grace[@]}" 2026-01-14T16:00:00+00:00 "Keep a sample log"

git branch feature/refunds
printf 'retry_limit = 5\n\ndef charge(amount):\n    # TODO: handle currencies\n    return amount > 0\n\ndef refund(amount):\n    # TODO: check the original payment\n    return -amount\n' > src/payment.py
commit "${ada[@]}" 2026-01-15T17:00:00+00:00 "Add refunds"

printf '\nSupport: help@example.com\n' >> README.md
printf 'call the bank\n' > notes.txt
