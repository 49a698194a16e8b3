#: threads
import threading
results, lock = [], threading.Lock()
def work(n):
    with lock:
        results.append(n * n)
threads = [threading.Thread(target=work, args=(n,)) for n in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(results), threading.current_thread().name, threading.active_count())
#: pools of threads
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
with ThreadPoolExecutor(max_workers=3) as pool:
    futures = {pool.submit(pow, n, 2): n for n in range(4)}
    print(sorted((futures[f], f.result()) for f in as_completed(futures)), list(pool.map(str.upper, "abc")))
    failing = pool.submit(int, "x")
    print(type(failing.exception()).__name__, wait([failing]).not_done)
#: a producer and a consumer
import queue
import threading
line, seen = queue.Queue(maxsize=2), []
def consume():
    while (item := line.get()) is not None:
        seen.append(item)
        line.task_done()
consumer = threading.Thread(target=consume)
consumer.start()
for n in range(5):
    line.put(n)
line.join()
line.put(None)
consumer.join()
print(seen, line.empty(), [queue.PriorityQueue, queue.LifoQueue][1].__name__)
try:
    line.get_nowait()
except queue.Empty:
    print("empty")
#: events, conditions and semaphores
import threading
ready, log = threading.Event(), []
def waiter():
    ready.wait()
    log.append("woken")
thread = threading.Thread(target=waiter)
thread.start()
log.append("setting")
ready.set()
thread.join()
condition, semaphore, barrier = threading.Condition(), threading.Semaphore(2), threading.Barrier(2)
print(log, semaphore.acquire(blocking=False), semaphore.acquire(blocking=False), semaphore.acquire(blocking=False))
other = threading.Thread(target=barrier.wait)
other.start()
print(barrier.wait() in (0, 1))
other.join()
#: values of a thread
import threading
local = threading.local()
local.x = "main"
def work():
    print(hasattr(local, "x"))
    local.x = "thread"
thread = threading.Thread(target=work, name="worker", daemon=True)
thread.start()
thread.join()
print(local.x, thread.is_alive(), thread.name, thread.daemon)
timer = threading.Timer(0.01, print, ("timer",))
timer.start()
timer.join()
#: errors in threads
import threading
caught = []
threading.excepthook = lambda args: caught.append((args.exc_type.__name__, str(args.exc_value)))
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
print(caught)
#: asyncio.run
import asyncio
async def double(x):
    await asyncio.sleep(0.001)
    return x * 2
async def main():
    print(await asyncio.gather(*(double(n) for n in range(4))))
    task = asyncio.create_task(double(21))
    print(task.done(), await task, task.done())
    return "finished"
print(asyncio.run(main()))
#: timeouts and cancellation
import asyncio
async def main():
    try:
        await asyncio.wait_for(asyncio.sleep(10), 0.01)
    except asyncio.TimeoutError:
        print("too slow")
    async def cleaning():
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            print("cleaning up")
            raise
    task = asyncio.create_task(cleaning())
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled", task.cancelled())
    try:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(5)
    except TimeoutError:
        print("timeout")
asyncio.run(main())
#: groups of tasks
import asyncio
async def work(n):
    await asyncio.sleep(0.001 * n)
    if n == 2:
        raise ValueError("two")
    return n
async def main():
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work(n)) for n in (0, 1)]
    print([t.result() for t in tasks])
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(work(2))
            group.create_task(work(50))
    except* ValueError as errors:
        print(errors.exceptions)
    print(await asyncio.gather(work(1), work(2), return_exceptions=True))
asyncio.run(main())
#: asynchronous iteration
import asyncio
class Ticker:
    def __init__(self, n):
        self.n = n
    def __aiter__(self):
        return self
    async def __anext__(self):
        if not self.n:
            raise StopAsyncIteration
        self.n -= 1
        await asyncio.sleep(0)
        return self.n
async def numbers(limit):
    for n in range(limit):
        yield n
        await asyncio.sleep(0)
class Resource:
    async def __aenter__(self):
        print("open")
        return self
    async def __aexit__(self, *error):
        print("close")
async def main():
    print([x async for x in Ticker(3)], {x async for x in numbers(3) if x}, sum([x async for x in numbers(5)]))
    async with Resource():
        async for n in numbers(2):
            print(n)
asyncio.run(main())
#: queues and locks of asyncio
import asyncio
async def main():
    queue, lock, event = asyncio.Queue(maxsize=1), asyncio.Lock(), asyncio.Event()
    async def produce():
        for n in range(3):
            await queue.put(n)
        await queue.put(None)
    async def consume():
        got = []
        while (item := await queue.get()) is not None:
            async with lock:
                got.append(item)
        event.set()
        return got
    _, got = await asyncio.gather(produce(), consume())
    await event.wait()
    print(got, lock.locked(), queue.qsize())
    semaphore = asyncio.Semaphore(2)
    active, most = 0, 0
    async def limited():
        nonlocal active, most
        async with semaphore:
            active += 1
            most = max(most, active)
            await asyncio.sleep(0.001)
            active -= 1
    await asyncio.gather(*(limited() for _ in range(6)))
    print(most)
asyncio.run(main())
#: first come and all done
import asyncio
async def after(seconds, name):
    await asyncio.sleep(seconds)
    return name
async def main():
    for next_one in asyncio.as_completed([after(0.05, "slow"), after(0.001, "fast")]):
        print(await next_one)
    done, pending = await asyncio.wait([asyncio.create_task(after(0.001, "a")), asyncio.create_task(after(5, "b"))], return_when=asyncio.FIRST_COMPLETED)
    print([t.result() for t in done], len(pending))
    for task in pending:
        task.cancel()
    print(await asyncio.to_thread(sum, [1, 2, 3]), await asyncio.get_running_loop().run_in_executor(None, len, "abc"))
asyncio.run(main())
#: futures and callbacks
import asyncio
async def main():
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    loop.call_later(0.001, future.set_result, "later")
    future.add_done_callback(lambda f: print("callback", f.result()))
    print(await future)
    order = []
    loop.call_soon(order.append, 1)
    await asyncio.sleep(0)
    print(order, asyncio.current_task().get_name()[:4], asyncio.iscoroutinefunction(main))
asyncio.run(main())
#: streams over a pair
import asyncio
import socket
async def main():
    a, b = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=a)
    _, other = await asyncio.open_connection(sock=b)
    other.write(b"line one\nline two\n")
    await other.drain()
    print(await reader.readline(), await reader.readuntil(b"two"))
    other.close()
    writer.close()
asyncio.run(main())
#: a runner
import asyncio
async def value(x):
    return x
with asyncio.Runner() as runner:
    print(runner.run(value(1)), runner.run(value(2)))
loop = asyncio.new_event_loop()
print(loop.run_until_complete(value(3)))
loop.close()
print(loop.is_closed())
#: awaiting at top level | await
import asyncio
async def double(x):
    await asyncio.sleep(0)
    return x * 2
print(await double(4))
values = await asyncio.gather(double(1), double(2))
print(values)
for value in values:
    print(await double(value))
async with asyncio.timeout(5):
    print([await double(n) for n in range(3)])
#: tasks at top level | await
import asyncio
log = []
async def work(name, turns):
    for n in range(turns):
        log.append(f"{name}{n}")
        await asyncio.sleep(0)
first = asyncio.create_task(work("a", 2))
second = asyncio.create_task(work("b", 3))
await first
await second
print(log, first.done())
#: asynchronous loops at top level | await
import asyncio
async def pages(limit):
    for n in range(limit):
        await asyncio.sleep(0)
        yield n
async for page in pages(3):
    print("page", page)
print([n async for n in pages(4) if n % 2])
try:
    await asyncio.wait_for(asyncio.Event().wait(), 0.01)
except asyncio.TimeoutError:
    print("nothing came")
#: coroutines by hand
class Awaitable:
    def __await__(self):
        received = yield "asked"
        return received
async def main():
    return await Awaitable()
coroutine = main()
print(coroutine.send(None))
try:
    coroutine.send("answer")
except StopIteration as stop:
    print(stop.value)
#: signals
import signal
import os
log = []
previous = signal.signal(signal.SIGUSR2, lambda number, frame: log.append(signal.Signals(number).name))
os.kill(os.getpid(), signal.SIGUSR2)
print(log, signal.getsignal(signal.SIGUSR2) is not previous)
