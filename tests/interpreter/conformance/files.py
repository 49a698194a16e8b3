#: text files
with open("notes.txt", "w", encoding="utf-8") as file:
    print(file.write("first\nsecond é\n"), file.name)
with open("notes.txt", "a+") as file:
    file.write("third")
    file.seek(0)
    print(file.readlines(), file.tell())
for number, line in enumerate(open("notes.txt"), 1):
    print(number, line.rstrip())
try:
    open("missing.txt")
except FileNotFoundError as error:
    print(error.errno, error.filename, error.strerror)
#: binary files
with open("data.bin", "wb") as file:
    file.write(bytes(range(20)))
with open("data.bin", "r+b") as file:
    file.seek(5)
    print(file.read(3), file.tell())
    file.seek(-2, 2)
    file.write(b"\xff\xff")
    file.truncate(25)
print(open("data.bin", "rb").read().hex())
#: paths
from pathlib import Path, PurePosixPath
folder = Path("project/src")
folder.mkdir(parents=True, exist_ok=True)
(folder / "main.py").write_text("print('hi')\n")
(folder.parent / "read.me").write_bytes(b"hello")
print(sorted(str(p) for p in Path("project").rglob("*")), (folder / "main.py").suffix, folder.parts, (folder / "main.py").stem)
print((folder / "x.tar.gz").suffixes, folder.relative_to("project"), PurePosixPath("/a/../b").as_posix(), Path("a") / "/b", Path("x.txt").with_suffix(".md"), folder.is_dir())
print((folder / "main.py").read_text(), (folder / "main.py").stat().st_size, Path("project/read.me").exists(), [p.name for p in sorted(Path("project").iterdir())])
#: folders
import os
import shutil
os.makedirs("a/b/c")
open("a/one.txt", "w").close()
open("a/b/two.txt", "w").write("two")
for root, folders, files in os.walk("a"):
    print(root, sorted(folders), sorted(files))
os.rename("a/one.txt", "a/b/uno.txt")
print(sorted(os.listdir("a/b")), os.path.getsize("a/b/two.txt"), os.path.join("a", "b"), os.path.splitext("x.tar.gz"), os.path.basename("/q/w.e"), os.path.isdir("a/b/c"))
shutil.rmtree("a")
print(os.path.exists("a"), os.path.normpath("a/../b/./c"), os.path.commonpath(["/a/b", "/a/c"]))
#: temporary files
import os
import tempfile
with tempfile.TemporaryDirectory(dir=".") as folder:
    path = os.path.join(folder, "x")
    with open(path, "w") as file:
        file.write("temp")
    print(os.path.getsize(path), os.path.isdir(folder))
print(os.path.exists(path))
with tempfile.NamedTemporaryFile("w+", suffix=".txt", dir=".") as file:
    file.write("hello")
    file.seek(0)
    print(file.read(), file.name.endswith(".txt"))
with tempfile.SpooledTemporaryFile(max_size=10) as file:
    file.write(b"x" * 20)
    print(file.tell())
#: comma separated values
import csv
import io
rows = [{"name": "Ada, L.", "age": 36}, {"name": 'Bob "B"', "age": 25}]
with open("people.csv", "w", newline="") as file:
    writer = csv.DictWriter(file, fieldnames=["name", "age"])
    writer.writeheader()
    writer.writerows(rows)
print(open("people.csv", newline="").read().split("\r\n"))
with open("people.csv", newline="") as file:
    for row in csv.DictReader(file):
        print(row["name"], int(row["age"]) + 1)
print(list(csv.reader(io.StringIO("a;'b;c'\n1;2\n"), delimiter=";", quotechar="'")), csv.Sniffer().sniff("a\tb\n1\t2\n").delimiter)
#: json
import json
data = {"name": "Ada", "tags": ["x", None, True], "nested": {"pi": 3.14, "big": 2**60}, "é": "ü"}
text = json.dumps(data, indent=2, sort_keys=True)
print(text, json.loads(text) == data, json.dumps(data, ensure_ascii=False, separators=(",", ":")))
with open("data.json", "w") as file:
    json.dump([1, {"a": (1, 2)}], file)
print(json.load(open("data.json")), json.loads('{"a": 1.50, "b": 1e3}', parse_float=str), json.dumps({1: float("inf")}), json.dumps("\u2028</script>"))
for wrong in ("{", '{"a" 1}', "[1,]"):
    try:
        json.loads(wrong)
    except json.JSONDecodeError as error:
        print(error, error.pos)
try:
    json.dumps({1, 2})
except TypeError as error:
    print(error)
#: json of its own classes
import json
from datetime import date
class Encoder(json.JSONEncoder):
    def default(self, value):
        if isinstance(value, date):
            return {"$date": value.isoformat()}
        return super().default(value)
def hook(mapping):
    return date.fromisoformat(mapping["$date"]) if "$date" in mapping else mapping
text = json.dumps({"when": date(2024, 1, 2)}, cls=Encoder)
print(text, json.loads(text, object_hook=hook), json.dumps(3j, default=str), json.loads('{"b":1,"a":2}', object_pairs_hook=list))
#: pickles
import pickle
from collections import OrderedDict
from dataclasses import dataclass
@dataclass
class Saved:
    x: int
    def __reduce__(self):
        return Saved, (self.x + 1,)
data = {"a": [1, (2, {3})], "o": OrderedDict(z=1), "s": Saved(1), "f": len}
with open("data.pickle", "wb") as file:
    pickle.dump(data, file)
print(pickle.load(open("data.pickle", "rb")))
try:
    pickle.dumps(lambda: 1)
except (pickle.PicklingError, AttributeError) as error:
    print("cannot pickle")
#: databases
import sqlite3
connection = sqlite3.connect("shop.db")
connection.row_factory = sqlite3.Row
connection.executescript("create table item (id integer primary key, name text unique, price real); create index by_price on item (price);")
with connection:
    connection.executemany("insert into item (name, price) values (?, ?)", [("tea", 2.5), ("bun", 1.25), ("jam", 4)])
print([tuple(row) for row in connection.execute("select name, price * 2 from item where price > :least order by price", {"least": 2})])
try:
    connection.execute("insert into item (name) values ('tea')")
except sqlite3.IntegrityError as error:
    print(error)
connection.create_function("shout", 1, lambda s: s.upper() + "!")
row = connection.execute("select shout(name) as loud, count(*) over () as n from item limit 1").fetchone()
print(row["n"], row.keys(), connection.total_changes)
#: a database in memory with joins
import sqlite3
db = sqlite3.connect(":memory:")
db.executescript("""
create table author (id integer primary key, name text);
create table book (title text, author integer references author);
insert into author values (1, 'Ann'), (2, 'Ben');
insert into book values ('A1', 1), ('A2', 1), ('B1', 2);
""")
print(db.execute("select name, count(*), group_concat(title, '+') from author join book on author.id = book.author group by name order by 2 desc").fetchall())
print(db.execute("with recursive n(i) as (select 1 union all select i + 1 from n where i < 5) select sum(i) from n").fetchone(), db.execute("select json_extract('{\"a\":[1,2]}', '$.a[1]')").fetchone())
#: zip archives
import io
import zipfile
with zipfile.ZipFile("all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("a.txt", "hello " * 100)
    archive.writestr("folder/b.txt", b"bytes")
with zipfile.ZipFile("all.zip") as archive:
    print(archive.namelist(), archive.getinfo("a.txt").file_size, archive.read("folder/b.txt"), archive.testzip())
    archive.extract("folder/b.txt", "out")
print(open("out/folder/b.txt").read(), zipfile.is_zipfile("all.zip"), zipfile.is_zipfile(io.BytesIO(b"x")))
#: tar, gzip, bz2, lzma
import bz2
import gzip
import io
import lzma
import tarfile
import zlib
data = b"repeat " * 200
for module in (gzip, bz2, lzma, zlib):
    packed = module.compress(data)
    print(module.__name__, len(packed) < len(data), module.decompress(packed) == data)
with tarfile.open("all.tar.gz", "w:gz") as archive:
    info = tarfile.TarInfo("x.txt")
    info.size = 5
    archive.addfile(info, io.BytesIO(b"hello"))
with tarfile.open("all.tar.gz") as archive:
    print(archive.getnames(), archive.extractfile("x.txt").read())
print(zlib.crc32(b"hello"), zlib.adler32(b"hello"))
#: configuration files
import configparser
import tomllib
config = configparser.ConfigParser()
config.read_string("[DEFAULT]\nbase = /x\n[paths]\nhome = %(base)s/home\non = yes\n")
print(config["paths"]["home"], config.getboolean("paths", "on"), config.sections(), config.get("paths", "none", fallback="-"))
with open("new.ini", "w") as file:
    config.write(file)
print(open("new.ini").read().strip().splitlines())
print(tomllib.loads('a = 1\n[b]\nc = [1, 2.5]\nd = 2024-01-02\n[[e]]\nf = "x"\n'))
#: xml
import xml.etree.ElementTree as ET
root = ET.fromstring('<shop><item price="2">tea</item><item price="3">bun<note/></item></shop>')
print([(item.text, item.get("price")) for item in root.iter("item")], root.find("item[@price='3']").text, ET.tostring(root[1]))
added = ET.SubElement(root, "item", price="9")
added.text = "a < b"
ET.indent(root)
print(ET.tostring(root, encoding="unicode"))
try:
    ET.fromstring("<a><b></a>")
except ET.ParseError as error:
    print(error)
from xml.dom import minidom
print(minidom.parseString("<a><b c='1'/></a>").documentElement.firstChild.getAttribute("c"))
#: finding files
import fileinput
import glob
import os
for name in ("a1.txt", "a2.txt", "b.log"):
    open(name, "w").write(name + "\nline two\n")
print(sorted(glob.glob("*.txt")), sorted(glob.glob("[ab]*")), sorted(entry.name for entry in os.scandir(".") if entry.is_file()))
with fileinput.input(files=("a1.txt", "b.log")) as lines:
    for line in lines:
        print(lines.filename(), lines.filelineno(), line.strip())
import linecache
print(linecache.getline("a2.txt", 2).strip(), os.stat("b.log").st_size)
#: copies within a folder
import filecmp
import os
import shutil
open("a.txt", "w").write("same")
shutil.copyfile("a.txt", "b.txt")
print(filecmp.cmp("a.txt", "b.txt", shallow=False), shutil.move("b.txt", "c.txt"), os.path.exists("b.txt"))
os.replace("c.txt", "a.txt")
os.remove("a.txt")
print(os.listdir("."), os.sep, os.linesep == "\n", os.curdir)
#: shelves of bytes and base encodings
import base64
import binascii
print(base64.b64encode(b"hello?>"), base64.urlsafe_b64encode(b"\xff\xfe"), base64.b32encode(b"hi"), base64.b16encode(b"hi"), base64.a85encode(b"test"), base64.b64decode("aGk="))
print(binascii.hexlify(b"ab", "-"), binascii.unhexlify("6162"), binascii.crc32(b"x"))
try:
    base64.b64decode("abc")
except binascii.Error as error:
    print(error)
