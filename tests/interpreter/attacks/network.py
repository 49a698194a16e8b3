#: a connection | the listener hears of it | bare
import socket
attempt(lambda: socket.create_connection(("127.0.0.1", PORT), 1).send(b"x"))
#: a connection by number | the listener hears of it
attempt(*(lambda family=family, kind=kind: syscall("socket", family, kind, 0) for family in (1, 2, 10, 16, 17, 38, 40, 44) for kind in (1, 2, 3, 5)))
#: a datagram | the listener hears of it | bare
import socket
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", UDP_PORT)))
#: an abstract socket | the listener hears of it | bare
import socket
attempt(lambda: socket.socket(socket.AF_UNIX).connect("\0" + NAME))
#: a named socket | the listener hears of it | bare
import socket
attempt(lambda: socket.socket(socket.AF_UNIX).connect(f"{CANARY}/socket"))
#: a pair of datagram sockets that sends to a name | the listener hears of it | bare
import socket
def through():
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    return pair[0].sendto(b"x", "\0" + NAME + "-datagrams")
attempt(through)
#: the runtime's socket used for a name | the listener hears of it
import socket
for number in range(16):
    try:
        held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=os.dup(number))
    except OSError:
        continue
    attempt(lambda: held.sendto(b"x", "\0" + NAME), lambda: held.connect("\0" + NAME), lambda: held.bind("\0taken"), lambda: held.listen())
#: a pair of stream sockets used for a name | the listener hears of it
import socket
one, other = socket.socketpair()
attempt(lambda: one.sendto(b"x", "\0" + NAME), lambda: one.connect("\0" + NAME), lambda: one.sendmsg([b"x"], [], 0, "\0" + NAME))
#: a listener of its own | others can connect
import socket
attempt(lambda: socket.create_server(("127.0.0.1", 0)), lambda: syscall("bind", 3, b"\x01\x00\x00taken", 8), lambda: syscall("listen", 3, 1))
#: a server with asyncio | others can connect
import asyncio
async def serve():
    await asyncio.start_server(print, "127.0.0.1", 0)
async def connect():
    await asyncio.wait_for(asyncio.open_connection("127.0.0.1", PORT), 1)
attempt(lambda: asyncio.run(serve()), lambda: asyncio.run(connect()))
#: names and addresses | the machine's resolver is asked
import socket
attempt(lambda: socket.getaddrinfo("localhost", 80), lambda: socket.gethostbyname("example.org"), lambda: socket.getservbyname("http"))
#: the web | something is fetched
import urllib.request
attempt(lambda: urllib.request.urlopen(f"http://127.0.0.1:{PORT}/", timeout=1).read(), lambda: urllib.request.urlopen(f"file://{SECRET}").read())
#: interfaces | they are listed or changed
import fcntl
import socket
attempt(lambda: fcntl.ioctl(3, 0x8912, bytes(40)), lambda: socket.if_nameindex(), lambda: read("/proc/net/tcp"))
#: descriptors passed on | the host gets one
import array
import socket
one, other = socket.socketpair()
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
host = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=os.dup(3))
attempt(lambda: one.sendmsg([b"x"], rights), lambda: host.sendmsg([b"x"], rights), lambda: syscall("sendmmsg", 3, bytes(64), 1, 0))
#: descriptors received | the program gets one
import socket
host = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=os.dup(3))
attempt(lambda: socket.recv_fds(host, 10, 4), lambda: syscall("recvmmsg", 3, bytes(64), 1, 0x40, 0))
#: who holds the other end of the runtime's socket | its process or user is told
import socket
host = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=os.dup(3))
def peer(option):
    print("got host", struct.unpack("i", host.getsockopt(socket.SOL_SOCKET, option, 4)))
attempt(lambda: peer(17), lambda: peer(77), lambda: peer(59), lambda: host.getpeername())
