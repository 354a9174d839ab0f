// Runs charts on `keelson up` through their life cycle: install --wait, test, upgrade, rollback, uninstall. They are
// the chart of `helm create`, one with a custom resource that kubectl changes too, and those of test/charts, which are
// written in the manner of published charts.
//
//   node scripts/helm-check.mjs [--version 3|4]... [--helm FILE] [--chart NAME]...
//
// Without --version, helm 3 and helm 4 in turn. Without FILE, helm is built from its Go modules. Helm 4 applies on the
// server. --chart selects charts of test/charts, and no others. Requires a build, Linux, root (names of services are
// served on port 53) and busybox.
import { execFile } from 'node:child_process';
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, parseArgs, promisify } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { buildGoTool, freePorts, until } = await import(`${root}packages/test-support/dist/src/index.js`);
const { cleanEnvironment, removeDirectory, runKeelson, startKeelson, temporaryDirectory } = await import(
  `${root}test/dist/src/keelson-process.js`
);
const { buildBusyboxImages } = await import(`${root}test/dist/src/busybox-image.js`);

const { values } = parseArgs({
  options: {
    version: { type: 'string', multiple: true, default: ['3', '4'] },
    helm: { type: 'string' },
    chart: { type: 'string', multiple: true, default: [] },
  },
});

function usage(message) {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

const chartFolder = join(root, 'test/charts');
const charts = (await readdir(chartFolder)).map((name) => basename(name, '.txtar')).sort();
for (const name of values.chart) {
  if (!charts.includes(name)) usage(`--chart: ${JSON.stringify(name)} is not one of ${charts.join(', ')}`);
}
const helms = values.version.map((version) => {
  if (version !== '3' && version !== '4') usage(`--version: ${JSON.stringify(version)} is not 3 or 4`);
  const file = values.helm ?? buildGoTool(`helm${version}`, `helm.sh/helm/v${version}/cmd/helm`);
  return { version, file: file ?? usage('helm cannot be built here; install Go, or name a binary with --helm FILE') };
});

const folder = await temporaryDirectory();
const data = join(folder, 'data');
/** One port for each revision of the chart, because pods of the process runtime share the ports of the machine. */
const [firstPort, secondPort] = await freePorts(2);
const commandTimeoutMs = 180_000;

// The server of the chart listens on the port of its service, which it finds in its environment, and not on all
// addresses, because the cluster address of the service has the same port.
const address = "$(ip -4 -o addr show scope global | head -n 1 | sed 's/.* inet \\([0-9.]*\\).*/\\1/')";
const listen = `exec httpd -f -h /tmp/www -p "${address}:$WEB_DEMO_SERVICE_PORT"`;
const serve = `mkdir -p /tmp/www && echo served > /tmp/www/index.html && ${listen}`;
buildBusyboxImages(join(folder, 'build'), join(data, 'node', 'images'), [
  { reference: 'example.com/site:1', config: { Cmd: ['/bin/sh', '-c', serve] } },
  { reference: 'example.com/idle:1', config: { Cmd: ['/bin/sh', '-c', 'trap "exit 0" TERM; sleep 100000 & wait'] } },
  { reference: 'busybox:latest' },
]);

const server = await startKeelson(data, ['--log-level', 'warn'], 'up');
// A copy of the kubeconfig, because the default namespace in it is changed.
const kubeconfig = join(folder, 'kubeconfig');
await copyFile(server.kubeconfig, kubeconfig);
const env = cleanEnvironment({
  KUBECONFIG: kubeconfig,
  HOME: folder,
  HELM_CACHE_HOME: join(folder, 'cache'),
  HELM_CONFIG_HOME: join(folder, 'config'),
  HELM_DATA_HOME: join(folder, 'helm-data'),
});

async function run(program, words) {
  const options = { env, cwd: folder, timeout: commandTimeoutMs, maxBuffer: 64 * 1024 * 1024 };
  return (await promisify(execFile)(program, words, options)).stdout;
}

const kubectl = (...words) => run('kubectl', words);

function expect(found, wanted, what) {
  if (wanted.test(found)) return;
  throw new Error(`${what}: expected ${wanted}, found ${JSON.stringify(found)}`);
}

const portOf = async () => (await kubectl('get', 'service', 'web-demo', '-o', 'jsonpath={.spec.ports[0].port}')).trim();
const settings = (port) => ['--set', `image.repository=example.com/site,image.tag=1,service.port=${port}`];
const wait = ['--wait', '--timeout', '90s'];

/**
 * Writes the files of a chart: lines `-- NAME --`, each followed by the file.
 *
 * @returns what stays after uninstall.
 */
async function unpack(name) {
  const text = await readFile(join(chartFolder, `${name}.txtar`), 'utf8');
  const parts = text.split(/^-- (\S+) --\n/m).slice(1);
  for (let i = 0; i < parts.length; i += 2) {
    const file = join(folder, name, parts[i]);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, parts[i + 1]);
  }
  const remains = parts.indexOf('remains.txt');
  return remains < 0 ? [] : parts[remains + 1].trim().split('\n');
}

/** Names of everything that is stored, apart from what the cluster writes for itself. */
async function everything() {
  const resources = (await kubectl('api-resources', '--verbs=list,delete', '-o', 'name')).trim().split('\n');
  const kept = resources.filter((name) => !/^(apiservices|events|leases|nodes|controllerrevisions)(\.|$)/.test(name));
  const names = await kubectl('get', kept.join(','), '--all-namespaces', '--ignore-not-found', '-o', 'name');
  return names.trim().split('\n');
}

/** The elements of `after` that are not in `before`. An element that occurs several times is counted each time. */
function added(before, after) {
  const left = [...before];
  return after.filter((name) => {
    const position = left.indexOf(name);
    if (position >= 0) left.splice(position, 1);
    return position < 0;
  });
}

/**
 * What a release has set in its objects: without statuses and what servers and controllers write. Jobs are left out,
 * because each revision of a chart has others.
 */
async function objectsOf(helm, name) {
  const manifest = join(folder, `${name}.yaml`);
  await writeFile(manifest, await helm('get', 'manifest', name, '-n', name));
  const shown = JSON.parse(await kubectl('get', '-f', manifest, '-o', 'json'));
  return (shown.items ?? [shown])
    .filter(({ kind }) => kind !== 'Job')
    .map(({ status: _status, metadata: { name: object, labels, annotations = {} }, ...content }) => {
      const own = Object.entries(annotations).filter(([key]) => !/^(deployment\.kubernetes|deprecated)\./.test(key));
      const aggregated = content.aggregationRule === undefined ? {} : { rules: undefined };
      return { name: object, labels, annotations: Object.fromEntries(own), ...content, ...aggregated };
    });
}

function expectEqual(found, wanted, what) {
  const shown = (object) => JSON.stringify(object) ?? 'nothing';
  const different = wanted.filter((object, i) => !isDeepStrictEqual(object, found[i]));
  if (different.length === 0 && found.length === wanted.length) return;
  const lines = different.map((object) => `${shown(object)}\n  is now ${shown(found[wanted.indexOf(object)])}`);
  throw new Error(`${what}: there were ${wanted.length} objects before and ${found.length} after\n${lines.join('\n')}`);
}

async function expectRemains(before, wanted, what) {
  let left = [];
  try {
    await until(async () => {
      left = added(before, await everything()).sort();
      return isDeepStrictEqual(
        left.map((name) => name.replace(/^(persistentvolume)\/.*/, '$1/*')),
        wanted,
      );
    });
  } catch (error) {
    throw new Error(`${what}: expected ${wanted.join(' ')}\nfound ${left.join(' ')}`, { cause: error });
  }
  return left;
}

/** Installs a chart of test/charts in a namespace of its own, changes, restores and removes it. */
async function publishedChart(helm, name) {
  const remains = await unpack(name);
  const before = await everything();
  const release = [name, `./${name}`, '-n', name];
  await kubectl('config', 'set-context', '--current', `--namespace=${name}`);
  const upgrade = () => helm('upgrade', ...release, ...wait, '-f', `./${name}/upgrade.yaml`);
  expect(await helm('install', ...release, '--create-namespace', ...wait), /STATUS: deployed/, `${name}: install`);
  const first = await objectsOf(helm, name);
  expect(await upgrade(), /REVISION: 2/, `${name}: upgrade`);
  const second = await objectsOf(helm, name);
  if (isDeepStrictEqual(first, second)) throw new Error(`${name}: the upgrade changed no object`);
  expect(await upgrade(), /REVISION: 3/, `${name}: the same upgrade again`);
  expectEqual(await objectsOf(helm, name), second, `${name}: the same upgrade again`);
  expect(await helm('rollback', name, '1', '-n', name, ...wait), /Rollback was a success/, `${name}: rollback`);
  expectEqual(await objectsOf(helm, name), first, `${name}: rollback`);
  await helm('test', name, '-n', name, '--timeout', '90s');
  expect(await helm('uninstall', name, '-n', name, ...wait), /release "\S+" uninstalled/, `${name}: uninstall`);
  // What helm and the controllers leave: the namespace, custom resource definitions, tests, claims of stateful sets.
  const wanted = ['configmap/kube-root-ca.crt', `namespace/${name}`, 'serviceaccount/default', ...remains].sort();
  const left = await expectRemains(before, wanted, `${name}: after uninstall`);
  const clusterWide = left.filter((entry) => /^(namespace|customresourcedefinition)/.test(entry));
  await kubectl('delete', '--timeout=60s', ...clusterWide);
  await kubectl('config', 'set-context', '--current', '--namespace=default');
  await expectRemains(before, [], `${name}: after the deletion of its namespace`);
}

/** A chart with a definition and an object of it, whose lists other managers write too. */
async function customResourceChart(helm, version) {
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
  await kubectl('delete', 'crd', 'gates.example.com');
}

/** The chart that `helm create` writes. */
async function createdChart(helm) {
  await helm('create', 'demo');
  const before = await everything();
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
  // The pod of `helm test` stays until the next test, as its annotation requests.
  await expectRemains(before, ['pod/web-demo-test-connection'], 'after uninstall');
  await kubectl('delete', 'pod/web-demo-test-connection');
}

try {
  for (const { version, file } of helms) {
    const helm = async (...words) => {
      const began = performance.now();
      const output = await run(file, words);
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      if (words[0] !== 'get') process.stdout.write(`${seconds} s  helm ${words.join(' ')}\n`);
      return output;
    };
    if (values.chart.length === 0) {
      await createdChart(helm);
      await customResourceChart(helm, version);
    }
    const chosen = values.chart.length === 0 ? charts : values.chart;
    for (const name of chosen) await publishedChart(helm, name);
    process.stdout.write(`helm ${(await helm('version', '--short')).trim()}: all steps passed\n`);
  }
} catch (error) {
  const shown = await kubectl('get', 'all,events', '-A', '-o', 'wide').catch(({ message }) => message);
  process.stderr.write(`${error.stderr ?? ''}${error.message}\n${shown}\n${server.output().stderr}\n`);
  process.exitCode = 1;
} finally {
  await runKeelson(['down', '--data', data]);
  await removeDirectory(folder);
}
