import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import { createControlPlane } from 'keelson';
import { removeDirectory, temporaryDirectory } from '../../src/keelson-process.ts';
import { findKubectl, Kubectl } from '../../src/kubectl.ts';

const command = findKubectl();

(command === undefined ? test.skip : test)('kubectl works with a plane that is mounted under a path', async (t) => {
  t.timeout(120_000);
  const home = await temporaryDirectory();
  t.teardown(() => removeDirectory(home));
  const plane = await createControlPlane();
  t.teardown(() => plane.close());
  const { listener, upgrade } = await plane.handler({ prefix: '/teams/blue', insecure: true });
  const paths = new Set<string>();
  const server = createServer((request, response) => {
    paths.add((request.url ?? '').split('/').slice(0, 3).join('/'));
    listener(request, response);
  }).on('upgrade', upgrade);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const kubeconfig = join(home, 'kubeconfig');
  const { port } = server.address() as AddressInfo;
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'blue' },
    clusters: [{ name: 'blue', cluster: { server: `http://127.0.0.1:${port}/teams/blue` } }],
    contexts: [{ name: 'blue', context: { cluster: 'blue', user: 'blue' } }],
    users: [{ name: 'blue', user: {} }],
  };
  await writeFile(kubeconfig, JSON.stringify(config));
  const kubectl = new Kubectl(command ?? '', kubeconfig, home);
  const manifest = (name: string) => JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });
  t.is(await kubectl.run(['apply', '-f', '-'], { input: manifest('one') }), 'configmap/one created\n');
  t.is(await kubectl.run(['create', '-f', '-'], { input: manifest('two') }), 'configmap/two created\n');
  const names = await kubectl.run(['get', 'configmaps', '--chunk-size=1', '-o', 'name']);
  t.regex(names, /configmap\/one\nconfigmap\/two\n/);
  t.regex(await kubectl.run(['api-resources']), /configmaps +cm +v1 +true +ConfigMap/);
  t.regex(await kubectl.run(['explain', 'configmap.data']), /FIELD: data/);
  const watch = kubectl.follow(['get', 'configmaps', '-w', '-o', 'name']);
  t.teardown(() => watch.stop());
  await watch.waitFor(/configmap\/two/);
  await kubectl.run(['delete', 'configmap', 'two']);
  t.regex((await kubectl.try(['exec', 'none', '--', 'true'])).stderr, /pods "none" not found/);
  t.deepEqual([...paths], ['/teams/blue'], 'no request left the prefix');
});
