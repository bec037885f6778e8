# Every target does its own set-up. `make help` lists them.
SHELL := /bin/bash
prefix ?= /usr/local
sysconfdir ?= /etc
unitdir ?= $(prefix)/lib/systemd/system
mandir ?= $(prefix)/share/man
docdir ?= $(prefix)/share/doc/waypost
# systemd looks for it in /usr alone: a copy elsewhere is for a package to place.
sleepdir ?= $(prefix)/lib/systemd/system-sleep
udevdir ?= $(prefix)/lib/udev/rules.d
sysusersdir ?= $(prefix)/lib/sysusers.d
# journald looks for it in /usr/lib and /etc alone.
catalogdir ?= $(prefix)/lib/systemd/catalog
bashdir ?= $(prefix)/share/bash-completion/completions
zshdir ?= $(prefix)/share/zsh/site-functions
fishdir ?= $(prefix)/share/fish/vendor_completions.d
DESTDIR ?=
# What is installed: stripped, with the Swift runtime in it.
binary ?= .build/release/waypost

.DEFAULT_GOAL := help
.PHONY: help setup build demo tests test test-all quick explore check lint size units docs expected formats fixtures fuzz bench score truth fleet simworld simworld-check simworld-coverage storm orders powercut pages servers metrics corpus install deb lab lab-full clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 12

setup:
	@scripts/setup

build: setup ## the daemon, release
	scripts/build waypost

demo: ## a simulated drive through the real daemon into a local collector; OPEN=1 leaves its live page up
	@scripts/demo

# What it installs or builds is in build/*.log.
tests:
	@scripts/quiet setup "Installing the packages that are missing" scripts/setup
	@scripts/quiet build-tests "Building the tests" scripts/build --tests

test: ## every test of the daemon that does not need root
	@echo "All tests of the daemon. The first build takes about 6 minutes on two cores"
	@echo "(3 after make demo), the tests 3 more."
	@$(MAKE) --no-print-directory tests
	@scripts/test --skip RootTests

test-all: ## also those of the tools, on ../shared where that is there, and with root those that need root
	@scripts/quiet setup "Installing the packages that are missing" scripts/setup
	@scripts/quiet build-tests "Building all tests" scripts/build --tests --tools
	@scripts/test $$([ -d ../shared/corpus/nmea ] || { echo "test-all: without CorpusTests, as there is no ../shared/corpus/nmea" >&2; echo --skip CorpusTests; }) \
		$$([ "$$(id -u)" = 0 ] || { echo "test-all: without what needs root" >&2; echo --skip RootTests; })

quick: setup ## builds and runs the tests of what differs from the last commit; TESTS=targets
	@scripts/quick $(TESTS)

explore: setup ## random tests with fresh seeds, which are printed; N=rounds; SEED=… FILTER=suite repeat one
	@scripts/quiet build-tests "Building all tests" scripts/build --tests --tools
	scripts/explore $(or $(N),1) $(FILTER)

check: lint tests size units docs ## format, warnings, imports, size of the binary, unit and udev rules, docs

lint:
	swift format lint --strict --recursive --parallel Package.swift Sources Tests

size: build
	scripts/check-binary

units:
	scripts/check-units

docs:
	scripts/check-docs

expected: setup ## rewrite the reviewed output in fixtures
	scripts/expected

formats: setup ## exports and imports of replay with gpsbabel and ogr2ogr
	scripts/build --debug waypost
	scripts/formats

fixtures: setup ## make the simulated logs of fixtures/nmea again
	scripts/fixtures

fuzz: setup ## each target of fuzz/targets under libFuzzer for ten minutes
	fuzz/run 600

bench: setup ## speed, memory, flash and wake-ups; needs the corpus, parts need root
	scripts/build waypost waypost-collector
	scripts/bench

truth: setup ## recorded drives against independent truth, in ../shared/truth
	scripts/build
	scripts/score-truth

score: setup ## starts, stops and odometer on simulated drives, against their targets
	scripts/build waypost-score
	scripts/score

fleet: setup ## what 10,000 devices do to one server, simulated
	scripts/build waypost-fleet
	"$$(scripts/build --path)/waypost-fleet"

simworld: setup ## the whole daemon in a simulated world; SEEDS=1-200, SIMWORLD=options
	scripts/build waypost-simworld
	scripts/simworld $(or $(SEEDS),1-200) $(SIMWORLD)

simworld-check: setup ## the simulated world finds each known fault; FAULT=names
	scripts/simworld-check $(FAULT)

simworld-coverage: setup ## coverage of the simulated world over the code that it tests; SEEDS=1-500
	scripts/simworld-coverage $(SEEDS)

storm: setup ## kill -9 under faults of network, endpoints, disk and clock; N=20000 fixes, STORM=options
	scripts/build waypost
	scripts/storm --fixes $(or $(N),20000) $(STORM)

orders: setup ## orders of events that once lost rows, against the daemon; parts need root; ORDERS=case…
	scripts/build waypost
	scripts/orders $(ORDERS)

powercut: setup ## N=30 power cuts, counted; needs root and a loop device
	scripts/build waypost
	scripts/powercut --images $(or $(N),30)
	scripts/powercut --images $(or $(N),30) --reordered
	scripts/powercut --images $(or $(N),8) --lying --phase uploading checkpointing

pages: setup ## the pages in a real Chromium; needs the network once; PAGE=live
	scripts/build waypost waypost-collector
	scripts/pages/run $(PAGE)

servers: setup ## the daemon against InfluxDB, botocore, cloudevents and standardwebhooks; needs the network once
	scripts/build waypost
	scripts/servers

metrics: setup ## promtool and prometheus_client read what the daemon offers; needs the network once
	scripts/build waypost
	scripts/metrics

places: setup ## the daemon between mocks of bluetoothd and NetworkManager; needs python3-dbusmock
	scripts/build waypost
	scripts/places

corpus: setup ## against the recorded logs in ../shared/corpus and the vectors in ../shared/vectors
	@test -d ../shared/corpus/nmea || { echo "corpus: ../shared/corpus/nmea is not there" >&2; exit 1; }
	@test -d ../shared/vectors || { echo "corpus: ../shared/vectors is not there" >&2; exit 1; }
	scripts/build --tests CorpusTests
	scripts/test

# The one list of what goes where: the package is made of it too.
# As root there is often no swift on the PATH: what was built is found without it.
install: ## into $(DESTDIR)$(prefix); run make build first
	@test -x $(binary) || { echo "install: nothing built yet: run make build first" >&2; exit 1; }
	install -D -m 0755 $(binary) "$(DESTDIR)$(prefix)/bin/waypost"
	install -D -m 0644 docs/waypost.8 "$(DESTDIR)$(mandir)/man8/waypost.8"
	install -d "$(DESTDIR)$(docdir)"
	packaging/pages "$(DESTDIR)$(docdir)"
	install -m 0644 packaging/monitoring/* "$(DESTDIR)$(docdir)"
	install -d "$(DESTDIR)$(unitdir)" "$(DESTDIR)$(sleepdir)" "$(DESTDIR)$(bashdir)" "$(DESTDIR)$(zshdir)" "$(DESTDIR)$(fishdir)"
	sed 's#^\(Exec[A-Za-z]*\)=/usr/bin/#\1=$(prefix)/bin/#' systemd/waypost.service > "$(DESTDIR)$(unitdir)/waypost.service"
	chmod 0644 "$(DESTDIR)$(unitdir)/waypost.service"
	sed 's#/usr/bin/waypost#$(prefix)/bin/waypost#' systemd/waypost-sleep > "$(DESTDIR)$(sleepdir)/waypost"
	chmod 0755 "$(DESTDIR)$(sleepdir)/waypost"
	install -D -m 0644 systemd/waypost.sysusers "$(DESTDIR)$(sysusersdir)/waypost.conf"
	install -D -m 0644 systemd/waypost.catalog "$(DESTDIR)$(catalogdir)/waypost.catalog"
	install -D -m 0644 udev/70-waypost.rules "$(DESTDIR)$(udevdir)/70-waypost.rules"
	$(binary) --generate-completion-script bash | sed "1{/^#!/d}" > "$(DESTDIR)$(bashdir)/waypost"
	$(binary) --generate-completion-script zsh > "$(DESTDIR)$(zshdir)/_waypost"
	$(binary) --generate-completion-script fish > "$(DESTDIR)$(fishdir)/waypost.fish"
	chmod 0644 "$(DESTDIR)$(bashdir)/waypost" "$(DESTDIR)$(zshdir)/_waypost" "$(DESTDIR)$(fishdir)/waypost.fish"
	install -D -m 0644 systemd/waypost.toml "$(DESTDIR)$(prefix)/share/waypost/waypost.toml"
	test -e "$(DESTDIR)$(sysconfdir)/waypost/waypost.toml" || \
		install -D -m 0640 systemd/waypost.toml "$(DESTDIR)$(sysconfdir)/waypost/waypost.toml"

deb: setup ## a Debian package for this suite and architecture, with its bill of materials, in build/
	@scripts/setup --deb
	scripts/build waypost
	packaging/build

lab: setup ## the installed daemon under a real systemd, gpsd and hotplug; needs root; LAB=part…
	@scripts/setup --lab
	scripts/build waypost waypost-collector
	scripts/lab/run $(LAB)

lab-full: setup ## the same in a virtual machine with a kernel of its own; needs root; LAB=part…
	@scripts/setup --lab-full
	scripts/build waypost waypost-collector
	scripts/lab/vm/run-all $(LAB)

clean: ## remove what was built
	rm -rf .build build
