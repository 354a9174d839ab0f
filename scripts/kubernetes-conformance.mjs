// Runs the conformance tests of Kubernetes 1.34 against `keelson up`, and writes their results to
// docs/reference/kubernetes-conformance.md.
//
//   node scripts/kubernetes-conformance.mjs [--focus REGEX] [--skip REGEX] [--minutes N] [--print]
//
// The program is built from Go modules with the Go of this machine, once, into the cache of the user. `--focus` and
// `--skip` select tests by their names; by default those of the API machinery. `--print` writes no page. The packages
// must be built.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const version = { kubernetes: 'v1.34.2', staging: 'v0.34.2' };
const page = fileURLToPath(new URL('../docs/reference/kubernetes-conformance.md', import.meta.url));
const binary = fileURLToPath(new URL('../packages/keelson/dist/bundle/keelson.js', import.meta.url));

const { values } = parseArgs({
  options: {
    focus: { type: 'string', default: '\\[sig-api-machinery\\].*\\[Conformance\\]' },
    skip: { type: 'string', default: '\\[Serial\\]|\\[Disruptive\\]' },
    minutes: { type: 'string', default: '60' },
    print: { type: 'boolean', default: false },
  },
});

function run(command, args, options = {}) {
  const { status, error, stderr } = spawnSync(command, args, { encoding: 'utf8', ...options });
  if (error !== undefined || status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr}`);
}

/** The modules of Kubernetes that its repository replaces by its own folders. */
function stagingModules(folder) {
  run('go', ['mod', 'download', `k8s.io/kubernetes@${version.kubernetes}`], { cwd: folder });
  const { stdout } = spawnSync('go', ['list', '-m', '-f', '{{.GoMod}}', `k8s.io/kubernetes@${version.kubernetes}`], {
    cwd: folder,
    encoding: 'utf8',
  });
  return [...readFileSync(stdout.trim(), 'utf8').matchAll(/^\s*(k8s\.io\/[a-z-]+) => \.\/staging/gm)].map(
    ([, name]) => name,
  );
}

/** The test program, built from its module. */
function testProgram() {
  const folder = join(homedir(), '.cache', 'keelson-test', `kubernetes-e2e-${version.kubernetes}`);
  const program = join(folder, 'e2e.test');
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  const head = ['module keelson.dev/conformance', '', 'go 1.24.0', ''];
  writeFileSync(join(folder, 'go.mod'), head.join('\n'));
  const replaced = stagingModules(folder).map((name) => `replace ${name} => ${name} ${version.staging}`);
  writeFileSync(
    join(folder, 'go.mod'),
    [...head, `require k8s.io/kubernetes ${version.kubernetes}`, '', ...replaced, ''].join('\n'),
  );
  writeFileSync(
    join(folder, 'tools.go'),
    '//go:build tools\n\npackage tools\n\nimport _ "k8s.io/kubernetes/test/e2e"\n',
  );
  process.stderr.write('building the tests of Kubernetes; this takes several minutes\n');
  run('go', ['mod', 'tidy'], { cwd: folder });
  run('go', ['test', '-c', '-o', program, 'k8s.io/kubernetes/test/e2e'], { cwd: folder });
  return program;
}

async function startCluster(data) {
  const args = ['up', '--data', data, '--listen', '127.0.0.1:0', '--log-level', 'warn', '--nodes', '2'];
  const server = spawn(process.execPath, [binary, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
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

/** The reasons for which a test cannot succeed on nodes without images. */
const needsImage =
  /ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull|cannot be pulled|image .* not found/i;

function resultsOf(report) {
  const [suite] = JSON.parse(readFileSync(report, 'utf8'));
  return (suite.SpecReports ?? [])
    .filter(({ LeafNodeType, State }) => LeafNodeType === 'It' && State !== 'skipped' && State !== 'pending')
    .map((spec) => {
      const name = [...(spec.ContainerHierarchyTexts ?? []), spec.LeafNodeText].join(' ');
      const output = `${spec.Failure?.Message ?? ''}\n${spec.CapturedGinkgoWriterOutput ?? ''}`;
      const passed = spec.State === 'passed';
      const missing = !passed && needsImage.test(output);
      const [reason = ''] = (spec.Failure?.Message ?? '').split('\n').filter((line) => line.trim() !== '');
      return { name, state: passed ? 'passed' : missing ? 'needs an image' : 'failed', reason };
    })
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

function pageOf(results) {
  const count = (state) => results.filter((result) => result.state === state).length;
  const table = (state, withReason) =>
    results
      .filter((result) => result.state === state)
      .map(({ name, reason }) => `| ${cell(name)} |${withReason ? ` ${cell(reason)} |` : ''}`);
  const cell = (text) => text.replaceAll('|', '\\|').replaceAll(/[<>]/g, ' ').slice(0, 300).trim();
  return [
    '# Conformance tests of Kubernetes',
    '',
    `Generated by \`node scripts/kubernetes-conformance.mjs\`, which builds the tests of Kubernetes ${version.kubernetes} from its Go`,
    'modules and runs them against `keelson up --nodes 2`. A test needs an image when its pods run a program of an image that no registry of',
    'the machine provides; pods of the process runtime have the programs of the machine only.',
    '',
    `Selected by \`${values.focus}\`, without \`${values.skip}\`.`,
    '',
    '| passed | failed | needs an image |',
    '|---|---|---|',
    `| ${count('passed')} | ${count('failed')} | ${count('needs an image')} |`,
    '',
    ...(count('failed') === 0 ? [] : ['## Failed', '', '| test | reason |', '|---|---|', ...table('failed', true), '']),
    ...(count('needs an image') === 0
      ? []
      : ['## Needs an image', '', '| test |', '|---|', ...table('needs an image', false), '']),
    ...(count('passed') === 0 ? [] : ['## Passed', '', '| test |', '|---|', ...table('passed', false), '']),
  ].join('\n');
}

const program = testProgram();
const data = mkdtempSync(join(tmpdir(), 'keelson-conformance-'));
const server = await startCluster(data);
try {
  const report = join(data, 'report.json');
  const args = [
    `-kubeconfig=${join(data, 'kubeconfig')}`,
    '-provider=skeleton',
    '-disable-log-dump',
    `-ginkgo.focus=${values.focus}`,
    `-ginkgo.skip=${values.skip}`,
    `-ginkgo.json-report=${report}`,
    `-ginkgo.timeout=${values.minutes}m`,
    '-ginkgo.no-color',
  ];
  const tests = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'], cwd: data });
  await new Promise((resolve) => tests.once('exit', resolve));
  const text = pageOf(resultsOf(report));
  if (values.print) process.stdout.write(text);
  else writeFileSync(page, text);
} finally {
  const exited = new Promise((resolve) => server.once('exit', resolve));
  server.kill('SIGTERM');
  await exited;
  spawnSync(process.execPath, [binary, 'down', '--data', data]);
  rmSync(data, { recursive: true, force: true });
}
