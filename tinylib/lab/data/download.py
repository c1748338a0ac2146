"""Files from elsewhere: fetched once, checked by their sha256, and read as text."""

import errno
import hashlib
import os
import zipfile
from pathlib import Path
from typing import NamedTuple


class RemoteFile(NamedTuple):
    """A text somewhere, or a zip file and the one text in it that is wanted."""

    name: str
    url: str
    sha256: str
    member: str = ""
    sha256_of_member: str = ""


class DataError(RuntimeError):
    """Data could not be fetched or read; the message names the file, the folder and a remedy."""


def data_folder() -> Path:
    """Where downloads are kept: ``$TINYLIB_DATA``, or else the platform's cache folder."""
    import pooch

    return Path(os.environ.get("TINYLIB_DATA") or pooch.os_cache("tinylib"))


def fetch(file: RemoteFile) -> Path:
    """The file's path in the data folder; it is downloaded if it is not there, or not whole.

    It gets its name only when all of it has come and its sha256 is right, so that nothing
    half-written is ever left there. DataError if there is no network, no such address, no space,
    or another file than expected.
    """
    import pooch

    folder = data_folder()
    remedy = f"or put {file.name} (sha256 {file.sha256}) there yourself"
    try:
        path = pooch.retrieve(file.url, f"sha256:{file.sha256}", file.name, folder)
    except ValueError:  # pooch: the checksum
        reason = f"what {file.url} sent is cut short or another file: its sha256 is wrong"
        remedy = f"Try again, {remedy}."
    except OSError as error:
        if error.errno == errno.ENOSPC:
            reason = "the disk is full"
            remedy = "Make some space, or set TINYLIB_DATA to a folder on another disk."
        elif error.filename or isinstance(error, PermissionError):  # pooch's names no file
            reason = f"the folder cannot be written ({error.strerror or error})"
            remedy = "Set TINYLIB_DATA to a folder of yours."
        else:
            reason = f"{file.url} did not send it ({error})"
            remedy = f"Try again with a network, {remedy}."
    else:
        return Path(path)
    raise DataError(f"no {file.name} in {folder}: {reason}. {remedy}")


def text_of(file: RemoteFile) -> str:
    """The text, or that in the zip file, fetched if need be. DataError if it is not as expected."""
    path = fetch(file)
    if not file.member:
        return path.read_text(encoding="utf-8")
    try:
        with zipfile.ZipFile(path) as archive:
            content = archive.read(file.member)
        if hashlib.sha256(content).hexdigest() != file.sha256_of_member:
            raise ValueError(f"the sha256 of {file.member} is wrong")
        return content.decode()
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}. Delete it, and try again.") from error
