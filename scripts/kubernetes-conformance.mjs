// Runs the conformance tests of Kubernetes 1.34 against `keelson up`, and writes their results to
// docs/reference/kubernetes-conformance.md.
//
//   node scripts/kubernetes-conformance.mjs --reports DIR [--focus REGEX] [--skip REGEX] [--minutes N]
//     [--fake-nodes N | --images]
//   node scripts/kubernetes-conformance.mjs --reports DIR --page
//
// The first form runs the tests that `--focus` and `--skip` select and adds a report to the folder: on two nodes whose
// pods are processes of this machine, with `--images` also with images built by kubernetes-images.mjs, or on N nodes
// whose pods run nothing. The second form writes the page from all reports of the folder. The programs are built from
// Go modules with the Go of this machine, once, into the cache of the user. As root everything runs in a network
// namespace of its own, in which ports are free and the server has an address that is not a loopback address. The
// packages must be built.
import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { writeKubernetesImages } from './kubernetes-images.mjs';

const version = { kubernetes: 'v1.34.2', staging: 'v0.34.2' };
const page = fileURLToPath(new URL('../docs/reference/kubernetes-conformance.md', import.meta.url));
const binary = fileURLToPath(new URL('../packages/keelson/dist/bundle/keelson.js', import.meta.url));

const { values } = parseArgs({
  options: {
    reports: { type: 'string' },
    page: { type: 'boolean', default: false },
    focus: { type: 'string', default: '\\[Conformance\\]' },
    skip: { type: 'string', default: '\\[Serial\\]|\\[Disruptive\\]' },
    minutes: { type: 'string', default: '60' },
    images: { type: 'boolean', default: false },
    'fake-nodes': { type: 'string' },
  },
});
if (values.reports === undefined || (values.images && values['fake-nodes'] !== undefined)) {
  process.stderr.write('--reports DIR is required; --images and --fake-nodes exclude each other\n');
  process.exit(2);
}
const reports = resolve(values.reports);
const cache = join(homedir(), '.cache', 'keelson-test', `kubernetes-e2e-${version.kubernetes}`);

function run(command, args, options = {}) {
  const { status, error, stderr } = spawnSync(command, args, { encoding: 'utf8', ...options });
  if (error !== undefined || status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr}`);
}

/** The folder of the module of Kubernetes. */
function kubernetesModule(folder) {
  run('go', ['mod', 'download', `k8s.io/kubernetes@${version.kubernetes}`], { cwd: folder });
  const { stdout } = spawnSync('go', ['list', '-m', '-f', '{{.Dir}}', `k8s.io/kubernetes@${version.kubernetes}`], {
    cwd: folder,
    encoding: 'utf8',
  });
  return stdout.trim();
}

/** Writes a module from which the packages of Kubernetes can be built, and returns its folder. */
function goProject(name, imports) {
  const folder = join(cache, name);
  mkdirSync(folder, { recursive: true });
  const head = ['module keelson.dev/conformance', '', 'go 1.24.0', ''];
  writeFileSync(join(folder, 'go.mod'), head.join('\n'));
  // The repository of Kubernetes replaces these modules by its own folders.
  const file = readFileSync(join(kubernetesModule(folder), 'go.mod'), 'utf8');
  const replaced = [...file.matchAll(/^\s*(k8s\.io\/[a-z-]+) => \.\/staging/gm)].map(
    ([, module]) => `replace ${module} => ${module} ${version.staging}`,
  );
  writeFileSync(
    join(folder, 'go.mod'),
    [...head, `require k8s.io/kubernetes ${version.kubernetes}`, '', ...replaced, ''].join('\n'),
  );
  const lines = imports.map((path) => `import _ "${path}"`);
  writeFileSync(join(folder, 'tools.go'), ['//go:build tools', '', 'package tools', '', ...lines, ''].join('\n'));
  run('go', ['mod', 'tidy'], { cwd: folder });
  return folder;
}

/** The test program, built from its module. */
function testProgram() {
  const program = join(cache, 'e2e.test');
  if (existsSync(program)) return program;
  process.stderr.write('building the tests of Kubernetes; this takes several minutes\n');
  const folder = goProject('tests', ['k8s.io/kubernetes/test/e2e']);
  run('go', ['test', '-c', '-o', program, 'k8s.io/kubernetes/test/e2e'], { cwd: folder });
  return program;
}

/** The folder of the images for pods. */
function imageFolder() {
  const folder = join(cache, 'images');
  if (existsSync(join(folder, 'names'))) return folder;
  const images = ['agnhost', 'nonewprivs'].map((name) => `k8s.io/kubernetes/test/images/${name}`);
  const project = goProject('image-programs', images);
  writeKubernetesImages(folder, project, kubernetesModule(project));
  return folder;
}

const address = '10.250.0.1';

/** Creates a network namespace. Returns the command line prefix for programs in it, and a function that removes it. */
function isolated() {
  if (process.getuid?.() !== 0) return { words: [], listen: '127.0.0.1:0', remove: () => {} };
  const name = `keelson-e2e-${process.pid}`;
  const ip = (...args) => run('ip', ['-n', name, ...args]);
  run('ip', ['netns', 'add', name]);
  ip('link', 'set', 'lo', 'up');
  ip('link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth1');
  ip('address', 'add', `${address}/24`, 'dev', 'eth0');
  for (const link of ['eth0', 'eth1']) ip('link', 'set', link, 'up');
  ip('route', 'add', 'default', 'via', '10.250.0.254');
  return {
    // `ip netns exec` would hide the cgroups of the machine.
    words: ['nsenter', `--net=/run/netns/${name}`],
    listen: `${address}:443`,
    remove: () => run('ip', ['netns', 'delete', name]),
  };
}

/** Starts a program with the command line prefix `words`. */
function start(words, program, args, options) {
  const [first, ...rest] = [...words, program, ...args];
  return spawn(first, rest, options);
}

async function startCluster(data, { words, listen }) {
  const fake = values['fake-nodes'];
  const nodes = fake === undefined ? ['--nodes', '2'] : ['--agent=false', '--fake-nodes', fake];
  if (values.images) {
    for (const node of ['node', 'node-2']) {
      mkdirSync(join(data, node), { recursive: true });
      symlinkSync(imageFolder(), join(data, node, 'images'));
    }
  }
  const args = ['up', '--data', data, '--listen', listen, '--ingress-listen', 'off', '--log-level', 'warn', ...nodes];
  const server = start(words, process.execPath, [binary, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  server.stdout.on('data', (chunk) => {
    output += chunk;
  });
  for (let i = 0; !/serving on/.test(output); i++) {
    if (server.exitCode !== null || i === 600) throw new Error('keelson up did not start');
    await delay(100);
  }
  return server;
}

/** Output of a failed test whose pods have an image that the nodes do not have. */
const needsImage =
  /ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull|cannot be pulled|image .* not found/i;

/** What pods that are processes of the machine cannot do, and the names of the tests that require it. */
const limits = [
  [/tmpfs|should run with the expected status/, 'the nodes of `keelson up` mount no file systems in memory'],
  [
    /HostPort|Granular Checks|Guestbook|multiple (endpoint IPs|ports) specified|functioning NodePort|affinity|serve (a basic|endpoints|multiport)|DNS|latency|halt if any|canary|roll backs|Burst scaling|recreate evicted|change the type|proportional scaling/,
    'pods share the network of the machine: two of them cannot have the same port, and none has an address of its own',
  ],
  [/support sysctls/, 'processes have the kernel parameters of the machine'],
  [/read only busybox|unprivileged when false|not allow privilege/, 'processes have the privileges of the agent'],
  [/failure policy (on exit code|to ignore)/, 'the nodes of `keelson up` run no privileged containers'],
];

/** The latest result of each conformance test; a success in any report counts. */
function resultsOf(folder) {
  const results = new Map();
  for (const file of readdirSync(folder).sort()) {
    if (!file.endsWith('.json')) continue;
    const [suite] = JSON.parse(readFileSync(join(folder, file), 'utf8'));
    for (const spec of suite.SpecReports ?? []) {
      const name = [...(spec.ContainerHierarchyTexts ?? []), spec.LeafNodeText].join(' ');
      if (spec.LeafNodeType !== 'It' || !name.includes('[Conformance]')) continue;
      const known = results.get(name);
      const isDone = !['skipped', 'pending', 'interrupted', 'aborted'].includes(spec.State);
      if (known === undefined || (isDone && known.state !== 'passed'))
        results.set(name, { name, ...(isDone ? stateOf(spec, name) : { state: 'not run', reason: '' }) });
    }
  }
  for (const result of results.values()) {
    const limit = limits.find(([names]) => names.test(result.name));
    if (limit === undefined || result.state === 'passed') continue;
    if (result.state === 'not run') result.reason = `expected to fail: ${limit[1]}`;
    else Object.assign(result, { state: 'not applicable', reason: limit[1] });
  }
  return [...results.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

function stateOf(spec, name) {
  if (spec.State === 'passed') return { state: 'passed', reason: '' };
  const message = spec.Failure?.Message ?? '';
  if (needsImage.test(`${message}\n${spec.CapturedGinkgoWriterOutput ?? ''}`))
    return { state: 'not applicable', reason: 'an image that no registry of the machine provides' };
  const [reason = ''] = message.split('\n').filter((line) => line.trim() !== '');
  // Names of objects are random.
  return { state: 'failed', reason: reason.replaceAll(/-[a-z0-9]*\d[a-z0-9-]*/g, '-N') || name };
}

const states = ['passed', 'failed', 'not applicable', 'not run'];

function pageOf(results) {
  const cell = (text) => text.replaceAll('|', '\\|').replaceAll(/[<>]/g, ' ').slice(0, 300).trim();
  const groupOf = ({ name }) => /^\[(sig-[a-z-]+)\]/.exec(name)?.[1] ?? 'other';
  const groups = [...new Set(results.map(groupOf))];
  const row = (title, of) => {
    const counts = states.map((state) => of.filter((result) => result.state === state).length);
    return `| ${title} | ${counts.join(' | ')} |`;
  };
  const section = (state, withReason) => {
    const rows = results.filter((result) => result.state === state);
    if (rows.length === 0) return [];
    return [
      `## ${state[0].toUpperCase()}${state.slice(1)}`,
      '',
      ...(withReason ? ['| test | reason |', '|---|---|'] : ['| test |', '|---|']),
      ...rows.map(({ name, reason }) => `| ${cell(name)} |${withReason ? ` ${cell(reason)} |` : ''}`),
      '',
    ];
  };
  return [
    '# Conformance tests of Kubernetes',
    '',
    `Generated by \`node scripts/kubernetes-conformance.mjs\`, which builds the tests of Kubernetes ${version.kubernetes} from its Go`,
    'modules and runs them against `keelson up`, in three ways:',
    '',
    '```',
    'node scripts/kubernetes-conformance.mjs --reports DIR                  # two nodes, pods are processes of the machine',
    'node scripts/kubernetes-conformance.mjs --reports DIR --images         # the same, with images built on the machine',
    'node scripts/kubernetes-conformance.mjs --reports DIR --fake-nodes 3   # nodes whose pods run nothing',
    'node scripts/kubernetes-conformance.mjs --reports DIR --page           # writes this page',
    '```',
    '',
    'A test counts as passed when it passed in one of these runs; one that passes on nodes whose pods run nothing needs no image.',
    '`scripts/kubernetes-images.mjs` builds agnhost and pause from the sources of Kubernetes, and makes the other images from busybox and',
    'programs of the machine: `httpd` and `nginx` are the web server of busybox. `--focus` and `--skip` select tests.',
    '',
    'Not applicable are failed tests that require of a container what a process of the machine cannot have, and those with other images.',
    '',
    `| group | ${states.join(' | ')} |`,
    '|---|---|---|---|---|',
    ...groups.map((group) =>
      row(
        group,
        results.filter((result) => groupOf(result) === group),
      ),
    ),
    row('all', results),
    '',
    ...section('failed', true),
    ...section('not applicable', true),
    ...section('not run', true),
    ...section('passed', false),
  ].join('\n');
}

async function runTests() {
  const program = testProgram();
  const data = mkdtempSync(join(tmpdir(), 'keelson-conformance-'));
  mkdirSync(reports, { recursive: true });
  const place = isolated();
  let server;
  try {
    server = await startCluster(data, place);
    const args = [
      `-kubeconfig=${join(data, 'kubeconfig')}`,
      '-provider=skeleton',
      '-disable-log-dump',
      `-ginkgo.focus=${values.focus}`,
      `-ginkgo.skip=${values.skip}`,
      `-ginkgo.json-report=${join(reports, `${new Date().toISOString().replaceAll(':', '-')}.json`)}`,
      `-ginkgo.timeout=${values.minutes}m`,
      '-ginkgo.no-color',
    ];
    const tests = start(place.words, program, args, { stdio: ['ignore', 'inherit', 'inherit'], cwd: data });
    await new Promise((end) => tests.once('exit', end));
  } finally {
    if (server !== undefined) {
      const exited = new Promise((end) => server.once('exit', end));
      server.kill('SIGTERM');
      await exited;
    }
    const [first, ...rest] = [...place.words, process.execPath, binary, 'down', '--data', data];
    spawnSync(first, rest);
    place.remove();
    rmSync(data, { recursive: true, force: true });
  }
}

if (values.page) writeFileSync(page, pageOf(resultsOf(reports)));
else await runTests();
