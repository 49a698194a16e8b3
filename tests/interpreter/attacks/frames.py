#: a reply to a call that the host never made | the host takes it | ends=crashed
send(2, {"id": 1, "result": 1})
time.sleep(5)
#: an error in the host's name | the host takes it | ends=crashed
send(3, {"id": 1, "kind": "denied", "message": "x", "hint": None})
time.sleep(5)
#: a program in the host's name | the host runs it | ends=crashed
send(1, {"version": 1, "source": "print(1)"})
time.sleep(5)
#: a second greeting | the host begins again | ends=crashed
send(16, {})
time.sleep(5)
#: the sentence of an open jail | the host believes it | ends=crashed
send(22, {"reason": "x"})
time.sleep(5)
#: kinds that do not exist | the host does something | ends=crashed
for kind in (0, 4, 23, 255):
    send(kind, {})
time.sleep(5)
#: a call of a name that it was not given | it is made | ends=crashed
send(19, call(1, target="system_toolkit", method="send_message"))
time.sleep(5)
#: a call of the runtime's own | it is made | ends=crashed
send(19, call(1, target="__class__", method="__init__"))
time.sleep(5)
#: the same call id twice | both are made | ends=crashed
send(19, call(7, method="forever"))
send(19, call(7, method="forever"))
time.sleep(5)
#: a cancellation of another's call | it is cancelled | ends=crashed
send(20, {"id": 12345})
time.sleep(5)
#: ids that are no numbers | they are taken | ends=crashed
send(19, call("1"))
time.sleep(5)
#: ids below nothing and above all | they are taken | ends=crashed
send(19, call(-1))
time.sleep(5)
#: a frame that is announced larger than allowed | the host makes room for it | ends=crashed
send(17, b"", length=0xFFFFFFFF)
time.sleep(5)
#: a frame just above the limit | the host makes room for it | ends=crashed
send(17, b"", length=64 * 1024 * 1024 + 1)
time.sleep(5)
#: a frame that is cut off by silence | the host waits for ever | ends=crashed wall=0.5
send(17, b'{"text": "', length=100)
time.sleep(50)
#: a frame that is cut off by the end | the host takes a half | ends=crashed
send(21, json.dumps(done(written=[variable()])).encode()[:50], length=500)
os._exit(0)
#: a head that is cut off | the host takes a half | ends=crashed
send_raw(b"\x05\x00\x00")
os._exit(0)
#: text that is no JSON | the host takes it | ends=crashed
send(17, b"\xff\xfe{}")
time.sleep(5)
#: JSON that is no message | the host takes it | ends=crashed
send(17, b"[1, 2]")
time.sleep(5)
#: bytes without an order | the host takes them | ends=crashed
# Seeded: one text in 64 would begin with a length that is allowed, and the host would wait for the rest.
import random
send_raw(random.Random(1).randbytes(100_000))
time.sleep(5)
#: JSON that is deep | the host's stack is used up | ends=crashed
send(19, b'{"id":1,"target":"demo","method":"echo","positional":[' + b"[" * 5_000_000)
time.sleep(5)
#: JSON that is deep and closed | the host's stack is used up | ends=crashed
send(19, b'{"id":1,"target":"demo","method":"echo","positional":' + b"[" * 10**6 + b"]" * 10**6 + b',"keyword":{},"line":1,"column":0,"ordinal":0}')
time.sleep(5)
#: small values without number in a call | the host's memory is used up | ends=crashed host=300
send_raw(struct.pack("<IB", 60 * 10**6 + 112, 19) + b'{"id":1,"target":"demo","method":"echo","keyword":{},"line":1,"column":0,"ordinal":0,"positional":[' + b" " * 12)
piece = b"[],[]," * 10**5
for _ in range(100):
    send_raw(piece)
time.sleep(5)
#: names without number in a last word | the host's memory is used up | ends=crashed host=300
body = json.dumps(done(removed=["", ""])).encode().replace(b'["", ""]', b'["",' + b'"",' * (20 * 10**6) + b'""]')
send_raw(struct.pack("<IB", len(body), 21))
send_raw(body)
os._exit(0)
#: a print of a frame's size, many times | the host's memory is used up | host=300
piece = json.dumps({"text": "x" * (30 * 2**20)}).encode()
for _ in range(20):
    send(17, piece)
#: calls with large arguments that wait | the host's memory is used up | host=300 wall=3
piece = "x" * (8 * 2**20)
for number in range(100):
    send(19, call(number, method="forever", positional=[piece]))
#: an early last word, and more after it | its end is believed or the rest is taken | ends=crashed
send(21, done(written=[variable()]))
send(19, call(1))
while True:
    time.sleep(1)
#: an early last word and a crash | it is believed | ends=crashed
send(21, done(written=[variable()]))
os.abort()
#: an early last word with a bad exit | it is believed | ends=crashed
send(21, done(written=[variable()]))
os._exit(1)
#: two last words | the second is taken | ends=crashed
send(21, done(ending={"kind": "returned", "value": None}, extra=1))
send(21, done(written=[variable()]))
time.sleep(5)
#: a last word with a toolkit's name in it | the name is taken over | ends=crashed
send(21, done(written=[variable("demo")]))
os._exit(0)
#: a last word with code for a name | it is written into the next program | ends=crashed
send(21, done(written=[variable("x: int = __import__('os')")]))
os._exit(0)
#: statements that go back and over | they are told | ends=crashed
for number in (3, 2, 1):
    send(18, {"number": number, "of": 3})
time.sleep(5)
#: more statements than there are letters | they are told | ends=crashed
send(18, {"number": 1, "of": 4_000_000_000})
time.sleep(5)
#: silence with the socket closed | the host waits for ever | ends=crashed
os.close(3)
time.sleep(50)
#: silence with one half of the socket closed | the host waits for ever | ends=crashed
import socket
socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=os.dup(3)).shutdown(socket.SHUT_WR)
time.sleep(50)
#: a host that is not listened to | the host is blocked | ends=limit wall=1
for number in range(200):
    send(19, call(number, method="big"))
time.sleep(50)
#: the runtime's descriptor given to something else | the host is confused | dies
os.dup2(0, 3)
#: the runtime's own objects | it calls past its limits | ends=limit wall=3
import gc
for one in gc.get_objects():
    if type(one).__name__ == "Calls":
        one._left = 10**9
for _ in range(3_000):
    await demo.echo()
