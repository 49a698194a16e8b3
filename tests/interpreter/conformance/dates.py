#: dates
from datetime import date, timedelta
day = date(2024, 2, 28)
print(day + timedelta(days=2), day.weekday(), day.isoformat(), day.strftime("%d.%m.%Y %A %j"), day.isocalendar(), day.replace(month=12), (date(2024, 12, 25) - day).days)
print([day + timedelta(weeks=n) for n in range(3)], date.fromisoformat("2024-03-01") > day, date.min, day.toordinal(), date.fromordinal(738000))
try:
    date(2023, 2, 29)
except ValueError as error:
    print(error)
#: times of day
from datetime import datetime, time, timedelta
moment = datetime(2024, 5, 17, 13, 45, 30, 123456)
print(moment, moment.date(), moment.time(), moment.isoformat(timespec="minutes"), moment.strftime("%H:%M:%S.%f %p %y"), datetime.strptime("17/05/24 01:02", "%d/%m/%y %H:%M"))
print(moment.replace(microsecond=0) - datetime(2024, 1, 1), time(23, 59) > time(1), datetime.combine(date := moment.date(), time(8)), datetime.fromisoformat("2024-05-17T10:00:00+02:00"))
#: spans of time
from datetime import timedelta
span = timedelta(days=1, hours=5, minutes=-30, milliseconds=1500)
print(span, span.total_seconds(), span * 2, span / 2, span // timedelta(hours=1), -span, abs(-span), divmod(span, timedelta(hours=7)), span.days, span.seconds)
print(timedelta(seconds=100) == timedelta(minutes=1, seconds=40), sum([timedelta(1), timedelta(2)], timedelta()), repr(timedelta(microseconds=5)))
#: time zones
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo
moment = datetime(2024, 3, 31, 0, 30, tzinfo=timezone.utc)
for zone in ("Europe/Berlin", "America/New_York", "Asia/Kolkata"):
    print(moment.astimezone(ZoneInfo(zone)), moment.astimezone(ZoneInfo(zone)).tzname())
berlin = datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
print(berlin.utcoffset(), berlin.replace(fold=1).utcoffset(), datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=-3, minutes=-30))).isoformat(), moment.timestamp())
try:
    datetime(2024, 1, 1) < moment
except TypeError as error:
    print(error)
#: calendars
import calendar
print(calendar.month(2024, 2))
print(calendar.isleap(2024), calendar.monthrange(2024, 2), calendar.day_name[0], list(calendar.Calendar().itermonthdays(2024, 2))[:5], calendar.timegm((2024, 1, 1, 0, 0, 0)))
#: seconds since the epoch
import time
print(time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(0)), time.gmtime(1_700_000_000)[:6], time.strptime("2024", "%Y").tm_year, time.mktime(time.struct_time((2024, 1, 1, 0, 0, 0, 0, 1, 0))) > 0)
before = time.monotonic()
time.sleep(0.01)
print(time.monotonic() - before >= 0.01, time.perf_counter() > 0, type(time.time_ns()).__name__)
#: ages and workdays
from datetime import date, timedelta
def age(born, today):
    return today.year - born.year - ((today.month, today.day) < (born.month, born.day))
def workdays(start, end):
    return sum((start + timedelta(n)).weekday() < 5 for n in range((end - start).days))
def easter(year):
    a, b, c = year % 19, year // 100, year % 100
    h = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    l = (32 + 2 * (b % 4) + 2 * (c // 4) - h - c % 4) % 7
    m = (a + 11 * h + 22 * l) // 451
    return date(year, (h + l - 7 * m + 114) // 31, (h + l - 7 * m + 114) % 31 + 1)
print(age(date(1990, 6, 15), date(2024, 6, 14)), workdays(date(2024, 1, 1), date(2024, 2, 1)), easter(2024), easter(2025))
