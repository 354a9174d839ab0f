// Runs an operator of kopf, test/tools/kopf, on `keelson serve`: finalizers, statuses, changes of one field, timers,
// events, a server that is restarted, and two operators of which only the one with the higher priority works.
//
//   node scripts/kopf-check.mjs [--python FILE]
//
// Requires a build, kubectl, and Python 3.10 or newer with the module venv. kopf is installed from PyPI, once, into the
// cache of the user.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { until } = await import(`${root}packages/test-support/dist/src/index.js`);
const { cleanEnvironment, removeDirectory, startKeelson, temporaryDirectory } = await import(
  `${root}test/dist/src/keelson-process.js`
);
const { findKubectl, Kubectl } = await import(`${root}test/dist/src/kubectl.js`);

const kopfVersion = '1.45.2';
const waitMs = 60_000;
const { values } = parseArgs({ options: { python: { type: 'string', default: 'python3' } } });

const kubectlFile = findKubectl() ?? usage('kubectl is neither on the PATH nor can it be built here');
const kopf = kopfProgram();
const tool = join(root, 'test/tools/kopf');
const data = await temporaryDirectory();
let server = await startKeelson(data);
const kubectl = new Kubectl(kubectlFile, server.kubeconfig, data);
const operators = [];

function usage(message) {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

/** Path of the command `kopf` in a Python virtual environment, which is created if it is missing. */
function kopfProgram() {
  const place = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'keelson-test', `kopf-${kopfVersion}`);
  const program = join(place, 'bin', 'kopf');
  if (existsSync(join(place, 'complete'))) return program;
  const check = 'import sys, venv; sys.exit(sys.version_info < (3, 10))';
  if (spawnSync(values.python, ['-c', check]).status !== 0)
    usage(`--python ${values.python} is not Python 3.10 or newer with the module venv`);
  rmSync(place, { recursive: true, force: true });
  for (const [command, ...words] of [
    [values.python, '-m', 'venv', place],
    [join(place, 'bin', 'pip'), 'install', '--quiet', `kopf==${kopfVersion}`],
  ]) {
    if (spawnSync(command, words, { stdio: ['ignore', 'inherit', 'inherit'] }).status !== 0)
      usage(`${command} ${words.join(' ')} failed; kopf cannot be installed here`);
  }
  writeFileSync(join(place, 'complete'), '');
  return program;
}

/** Starts the operator. Its own code prints to stdout (`lines`), and kopf logs to stderr (`log`). */
function startOperator(priority) {
  const words = ['run', join(tool, 'operator.py'), '--namespace=default', `--priority=${priority}`];
  const child = spawn(kopf, words, { env: cleanEnvironment({ KUBECONFIG: server.kubeconfig, HOME: data }) });
  const operator = {
    ...{ child, priority, lines: [], log: '' },
    reports: (line) => until(() => operator.lines.includes(line), `operator ${priority} prints ${line}`, waitMs),
    logs: (pattern) => until(() => pattern.test(operator.log), `operator ${priority} logs ${pattern}`, waitMs),
    async stop() {
      child.kill('SIGTERM');
      await until(() => child.exitCode !== null || child.signalCode !== null, 'the operator ends', waitMs);
    },
  };
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += String(chunk);
    operator.lines = output.trim().split('\n');
  });
  child.stderr.on('data', (chunk) => {
    operator.log += String(chunk);
  });
  operators.push(operator);
  return operator;
}

function expect(found, wanted, what) {
  const shown = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
  if (shown(found) !== shown(wanted)) throw new Error(`${what}: expected ${shown(wanted)}, found ${shown(found)}`);
  process.stdout.write(`${what}\n`);
}

const lamp = (path) => kubectl.run(['get', 'lamp', 'desk', '-o', `jsonpath=${path}`]);
const change = (spec) => kubectl.run(['patch', 'lamp', 'desk', '--type=merge', '-p', JSON.stringify({ spec })]);

async function run() {
  const create = (object) => kubectl.run(['create', '-f', '-'], { input: JSON.stringify(object) });
  await kubectl.run(['apply', '-f', join(tool, 'definitions.yaml')]);
  await kubectl.run(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s']);
  await create({ apiVersion: 'kopf.dev/v1', kind: 'KopfPeering', metadata: { name: 'lamps' } });
  const first = startOperator(10);
  await first.logs(/Resuming operations/);
  const second = startOperator(1);
  const peers = async () => Object.keys((await kubectl.json(['get', 'kopfpeering', 'lamps'])).status ?? {});
  await until(async () => (await peers()).length === 2, 'both operators are peers', waitMs);

  const metadata = { name: 'desk' };
  await create({ apiVersion: 'lamps.example.com/v1', kind: 'Lamp', metadata, spec: { volts: 5, room: 'study' } });
  await first.reports('created desk 1');
  await until(async () => (await lamp('{.status.created.lit}')) === 'true', 'the result in the status', waitMs);
  expect(await lamp('{.status.watts} {.metadata.generation}'), '10 1', 'a handler of creation sets the status');
  expect(await lamp('{.metadata.finalizers}'), ['lamps.example.com/release'], 'the object has the finalizer of kopf');
  const event = ['get', 'events', '--field-selector=involvedObject.name=desk,reason=Lit', '-o', 'name'];
  await until(() => kubectl.run(event), 'the event of the handler', waitMs);

  await change({ room: 'hall' });
  await change({ volts: 12 });
  await first.reports('updated desk 3 5 12');
  await until(async () => (await lamp('{.status.watts}')) === '24', 'the changed status', waitMs);
  expect(first.lines, ['created desk 1', 'updated desk 3 5 12'], 'a handler of one field runs for its changes only');
  await kubectl.run(['annotate', 'lamp', 'desk', 'lamps.example.com/probe=now']);
  const probe = '{.metadata.annotations.lamps\\.example\\.com/probe}';
  await until(async () => (await lamp(probe)) === 'hall', 'a timer writes its annotation', waitMs);

  await server.stop();
  server = await startKeelson(data, ['--listen', new URL(server.url).host]);
  await change({ volts: 20 });
  await first.reports('updated desk 4 12 20');
  await until(async () => (await lamp('{.status.watts}')) === '40', 'the status after the restart', waitMs);
  expect(first.lines.length, 3, 'the operator continues after a restart of the server');

  expect(second.lines, [], 'the operator with the lower priority does nothing');
  await first.stop();
  await second.reports('resumed desk 4');
  await kubectl.run(['delete', 'lamp', 'desk', '--timeout=60s']);
  await second.reports('deleted desk after 2');
  expect(second.lines, ['resumed desk 4', 'deleted desk after 2'], 'the other takes over, and retries a deletion');
  await second.stop();
  process.stdout.write(`kopf ${kopfVersion}: all steps passed\n`);
}

try {
  await run();
} catch (error) {
  const logs = operators.map(({ priority, lines, log }) => `operator ${priority}:\n${lines.join('\n')}\n${log}`);
  process.stderr.write(`${error.stack}\n${logs.join('\n')}\n${server.output().stderr}\n`);
  process.exitCode = 1;
} finally {
  for (const { child } of operators) child.kill('SIGKILL');
  await server.stop();
  await removeDirectory(data);
}
