"""Changes databases for tests, either with valid checksums like GRETA or without."""
import contextlib
import re
import shutil
import sqlite3
import struct


def fnv1a_128(data):
    state = 0x6c62272e07bb014262b821756295c58d
    for byte in data:
        state = (state ^ byte) * 0x1000000000000000000013b % 2 ** 128
    return state


def number_bytes(number):
    return struct.pack("<Q", number % 2 ** 64)


def field_bytes(data):
    return number_bytes(len(data)) + data


def fingerprint(device):
    """Implements DeviceInfo::fingerprint() for a CPU device: 128-bit FNV-1a over fields with lengths."""
    assert device["kind"] == "CPU", device["kind"]
    fields = [device[name].encode() for name in ("backend", "vendor", "architecture")]
    product = re.sub(r"(?<=.)( \(.*\))+$", "", device["name"])
    product = bytes(byte for byte in product.encode() if byte < 0x80)
    data = b"".join(map(field_bytes, fields)) + number_bytes(device["compute_units"])
    return f"{fnv1a_128(data + field_bytes(product) + field_bytes(device['uuid'].encode())):032x}"


def checksum(*arguments, bytes_are_text=False):
    """Returns the checksum that db/sqlite/checksums.cpp stores with a row: over names and values
    that are not NULL. `bytes_are_text`: bytes are text that need not be UTF-8, not blobs."""
    kinds = {int: 1, float: 2, str: 3, bytes: 3 if bytes_are_text else 4}
    data = b""
    for name, value in zip(arguments[::2], arguments[1::2]):
        if value is None:
            continue
        data += field_bytes(name.encode())
        data += number_bytes(kinds[type(value)])
        if isinstance(value, int):
            data += number_bytes(value)
        elif isinstance(value, float):
            data += struct.pack("<d", value or 0.0)
        else:
            data += field_bytes(value.encode() if isinstance(value, str) else value)
    low = fnv1a_128(data) % 2 ** 64
    return low - 2 ** 64 if low >> 63 else low


def is_sound(connection, table, row=""):
    names = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
    arguments = ", ".join(f"'{name}', {row}{name}" for name in names if name != "checksum")
    return f"{row}checksum IS greta_checksum({arguments})"


@contextlib.contextmanager
def connect(file):
    """Opens a connection, commits its changes and closes it at the end. An open connection would
    keep a log, which would be mistaken for the log of the next content of the file."""
    with contextlib.closing(sqlite3.connect(file, timeout=30)) as connection, connection:
        connection.create_function("greta_checksum", -1, checksum, deterministic=True)
        yield connection


def restore(template, file):
    """Replaces a database and its log by a copy of a closed database. The copy is a new file,
    because SQLite shares state among a process's connections to one file."""
    for suffix in ("", "-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)
    shutil.copy(template, file)


def sealed_tables(connection):
    return [table for table, in connection.execute(
        "SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c"
        " WHERE m.type = 'table' AND c.name = 'checksum' ORDER BY m.name").fetchall()]


def damaged_rows(file):
    """Returns the number of damaged rows, by an independent computation."""
    with connect(file) as connection:
        return sum(connection.execute(f"SELECT count(*) FROM {table} WHERE NOT ("
                                      f"{is_sound(connection, table)})").fetchone()[0]
                   for table in sealed_tables(connection))


def rewrite(file, sql, values=(), tables=("devices", "sessions", "circumstances", "winners", "unsafe")):
    """Changes rows of these tables and updates their checksums."""
    with connect(file) as connection:
        connection.execute(sql, values)
        for table in tables:
            sound = is_sound(connection, table)
            connection.execute(f"UPDATE {table} SET checksum = {sound.split(' IS ')[1]} WHERE NOT ({sound})")


def damage(file, sql):
    """Changes rows without updating their checksums."""
    with connect(file) as connection:
        connection.execute(sql)
