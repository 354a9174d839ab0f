// Runs the chart of `helm create` and one with a custom resource on `keelson up` through their lives: install --wait,
// test, upgrade, rollback, uninstall.
// `node scripts/helm-check.mjs [--version 3|4] [--helm FILE]`, after a build. Without FILE, helm is built from its Go
// modules. Helm 4 applies on the server. Requires Linux, root (names of services are served on port 53) and busybox.
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { buildGoTool, freePorts } = await import(`${root}packages/test-support/dist/src/index.js`);
const { cleanEnvironment, removeDirectory, runKeelson, startKeelson, temporaryDirectory } = await import(
  `${root}test/dist/src/keelson-process.js`
);
const { buildBusyboxImages } = await import(`${root}test/dist/src/busybox-image.js`);

const { values } = parseArgs({ options: { version: { type: 'string', default: '3' }, helm: { type: 'string' } } });
const { version } = values;
if (version !== '3' && version !== '4') {
  process.stderr.write(`--version: ${JSON.stringify(version)} is not 3 or 4\n`);
  process.exit(2);
}
const helmFile = values.helm ?? buildGoTool(`helm${version}`, `helm.sh/helm/v${version}/cmd/helm`);
if (helmFile === undefined) {
  process.stderr.write('helm cannot be built here; install Go, or name a binary with --helm FILE\n');
  process.exit(2);
}

const folder = await temporaryDirectory();
const data = join(folder, 'data');
/** Pods of the process runtime share the ports of the machine, so that each revision of the chart has its own. */
const [firstPort, secondPort] = await freePorts(2);
const commandTimeoutMs = 180_000;

// The server of the chart listens on the port of its service, which it finds in its environment, and not on all
// addresses, because the cluster address of the service has the same port.
const address = "$(ip -4 -o addr show scope global | head -n 1 | sed 's/.* inet \\([0-9.]*\\).*/\\1/')";
const listen = `exec httpd -f -h /tmp/www -p "${address}:$WEB_DEMO_SERVICE_PORT"`;
const serve = `mkdir -p /tmp/www && echo served > /tmp/www/index.html && ${listen}`;
buildBusyboxImages(join(folder, 'build'), join(data, 'node', 'images'), [
  { reference: 'example.com/site:1', config: { Cmd: ['/bin/sh', '-c', serve] } },
  { reference: 'busybox:latest' },
]);

const server = await startKeelson(data, ['--log-level', 'warn'], 'up');
const env = cleanEnvironment({
  KUBECONFIG: server.kubeconfig,
  HOME: folder,
  HELM_CACHE_HOME: join(folder, 'cache'),
  HELM_CONFIG_HOME: join(folder, 'config'),
  HELM_DATA_HOME: join(folder, 'helm-data'),
});

async function run(program, words) {
  const began = performance.now();
  const { stdout } = await promisify(execFile)(program, words, { env, cwd: folder, timeout: commandTimeoutMs });
  process.stdout.write(
    `${((performance.now() - began) / 1000).toFixed(1)} s  ${program === helmFile ? 'helm' : program} ${words.join(' ')}\n`,
  );
  return stdout;
}

const helm = (...words) => run(helmFile, words);
const kubectl = (...words) => run('kubectl', words);

function expect(found, wanted, what) {
  if (wanted.test(found)) return;
  throw new Error(`${what}: expected ${wanted}, found ${JSON.stringify(found)}`);
}

const portOf = async () => (await kubectl('get', 'service', 'web-demo', '-o', 'jsonpath={.spec.ports[0].port}')).trim();
const settings = (port) => ['--set', `image.repository=example.com/site,image.tag=1,service.port=${port}`];
const wait = ['--wait', '--timeout', '90s'];

/** A chart with a definition and an object of it, whose lists other managers write too. */
async function customResourceChart() {
  const text = { type: 'string' };
  const port = {
    type: 'object',
    required: ['name'],
    properties: { name: text, protocol: { ...text, default: 'TCP' } },
  };
  const ports = { type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name', 'protocol'] };
  const spec = { type: 'object', properties: { size: text, ports: { ...ports, items: port } } };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'gates.example.com' },
    spec: {
      ...{ group: 'example.com', scope: 'Namespaced', names: { plural: 'gates', singular: 'gate', kind: 'Gate' } },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  };
  const object = [
    ...['apiVersion: example.com/v1', 'kind: Gate', 'metadata: {name: main}', 'spec:'],
    ...['  size: {{ .Values.size }}', '  ports: [{name: a}, {name: b, protocol: UDP}]'],
  ];
  const write = async (file, content) => {
    await mkdir(join(folder, 'gates', file, '..'), { recursive: true });
    await writeFile(join(folder, 'gates', file), content);
  };
  await write('Chart.yaml', 'apiVersion: v2\nname: gates\nversion: 0.1.0\n');
  await write('values.yaml', 'size: small\n');
  await write('crds/gates.yaml', JSON.stringify(definition));
  await write('templates/main.yaml', `${object.join('\n')}\n`);
  const found = async () =>
    kubectl('get', 'gate', 'main', '-o', 'jsonpath={.spec.size} {.spec.ports[*].name} {.spec.ports[*].protocol}');

  expect(await helm('install', 'gates', './gates', ...wait), /STATUS: deployed/, 'install of a custom resource');
  expect(await found(), /^small a b TCP UDP$/, 'after install');
  const added = JSON.stringify([{ op: 'add', path: '/spec/ports/-', value: { name: 'c' } }]);
  await kubectl('patch', 'gate', 'main', '--type=json', '-p', added);
  expect(await helm('upgrade', 'gates', './gates', ...wait, '--set', 'size=large'), /REVISION: 2/, 'upgrade');
  // Helm 4 applies on the server, which keeps the items of other managers; helm 3 replaces what its chart contains.
  expect(await found(), version === '4' ? /^large a b c TCP UDP TCP$/ : /^large a b/, 'after upgrade');
  expect(await helm('rollback', 'gates', '1', ...wait), /Rollback was a success/, 'rollback');
  expect(await found(), /^small a b/, 'after rollback');
  expect(await helm('uninstall', 'gates', ...wait), /release "gates" uninstalled/, 'uninstall');
  expect(await kubectl('get', 'gates,crd', '-o', 'name'), /^customresourcedefinition\S*gates.example.com\n$/, 'left');
}

try {
  await helm('create', 'demo');
  expect(await helm('install', 'web', './demo', ...wait, ...settings(firstPort)), /STATUS: deployed/, 'install');
  expect(await kubectl('get', 'deployment', 'web-demo', '--no-headers'), /^web-demo\s+1\/1\s+1\s+1\s/, 'after install');
  expect(await helm('test', 'web', '--timeout', '90s'), /Phase:\s+Succeeded/, 'test');
  expect(await helm('upgrade', 'web', './demo', ...wait, ...settings(secondPort)), /REVISION: 2/, 'upgrade');
  expect(await portOf(), new RegExp(`^${secondPort}$`), 'after upgrade');
  expect(await helm('test', 'web', '--timeout', '90s'), /Phase:\s+Succeeded/, 'test after upgrade');
  expect(await helm('rollback', 'web', '1', ...wait), /Rollback was a success/, 'rollback');
  expect(await portOf(), new RegExp(`^${firstPort}$`), 'after rollback');
  expect(
    await helm('history', 'web'),
    /1\s.*superseded(?:.|\n)*2\s.*superseded(?:.|\n)*3\s.*deployed.*Rollback to 1/,
    'history',
  );
  expect(await helm('list'), /^web\s+default\s+3\s.*deployed\s+demo-0\.1\.0/m, 'list');
  expect(await helm('uninstall', 'web', ...wait), /release "web" uninstalled/, 'uninstall');
  const selector = 'app.kubernetes.io/instance=web';
  const left = await kubectl('get', 'all,serviceaccounts,secrets', '-l', selector, '-o', 'name');
  const releases = await kubectl('get', 'secrets', '-l', 'owner=helm', '-o', 'name');
  // The pod of `helm test` stays until the next test, as its annotation requests.
  expect(left + releases, /^(pod\/web-demo-test-connection\n)?$/, 'after uninstall');
  await customResourceChart();
  process.stdout.write(`helm ${(await helm('version', '--short')).trim()}: all steps passed\n`);
} catch (error) {
  const shown = await kubectl('get', 'all,events', '-o', 'wide').catch(({ message }) => message);
  process.stderr.write(`${error.stderr ?? ''}${error.message}\n${shown}\n${server.output().stderr}\n`);
  process.exitCode = 1;
} finally {
  await runKeelson(['down', '--data', data]);
  await removeDirectory(folder);
}
