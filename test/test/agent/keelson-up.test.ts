import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@keelson/testing';
import test from 'ava';
import { waitingPod } from '../../src/agent-process.ts';
import { removeDirectory, runKeelson, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';
import { findKubectl, Kubectl } from '../../src/kubectl.ts';

const waitMs = 60_000;
const canRun = process.platform === 'linux';
const command = canRun ? findKubectl() : undefined;
const nodeName = hostname().trim().toLowerCase();

const onLinux = command === undefined ? test.skip : test;

onLinux(
  'keelson up: a Ready node runs a pod of kubectl, which outlives the process and is adopted by the next',
  async (t) => {
    t.timeout(180_000);
    const data = await temporaryDirectory();
    t.teardown(() => removeDirectory(data));
    let server = await startKeelson(data, ['--log-level', 'warn'], 'up');
    t.teardown(() => server.kill());
    const kubectl = new Kubectl(command ?? '', server.kubeconfig, data);
    const node = await eventually(async () => {
      const { stdout } = await kubectl.try(['get', 'nodes', '--no-headers']);
      return /\bReady\b/.test(stdout) && stdout;
    }, waitMs);
    t.true(node.startsWith(nodeName), node);
    t.is(server.output().stdout, `keelson: serving on ${server.url}\n`);

    const pidFile = join(data, 'pid');
    const { spec } = waitingPod('hello', pidFile);
    const overrides = JSON.stringify({ apiVersion: 'v1', spec: { nodeName, ...spec } });
    await kubectl.run(['run', 'hello', '--image=host', `--overrides=${overrides}`]);
    await kubectl.run(['wait', '--for=condition=Ready', 'pod/hello', '--timeout=50s']);
    const pid = Number(await eventually(() => readFile(pidFile, 'utf8'), waitMs));
    t.true(process.kill(pid, 0));
    t.teardown(() => {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // Ended, as it should be.
      }
    });

    t.is(await server.stop(), 0, server.output().stderr);
    t.true(process.kill(pid, 0), 'a container outlives the agent');
    server = await startKeelson(data, ['--log-level', 'warn'], 'up');
    const after = new Kubectl(command ?? '', server.kubeconfig, data);
    await eventually(
      async () => (await after.run(['get', 'node', nodeName, '--no-headers'])).includes(' Ready '),
      waitMs,
    );
    t.regex(await after.run(['get', 'pod', 'hello', '--no-headers']), /1\/1\s+Running\s+0\s/);
    t.is(Number(await readFile(pidFile, 'utf8')), pid);
    await after.run(['delete', 'pod', 'hello', '--timeout=50s']);
    t.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
    t.is(await server.stop(), 0, server.output().stderr);
    t.false(server.output().stderr.includes('"level":"error"'), server.output().stderr);
  },
);

/** A pod that appends the id of its process to a file; it is bound by the scheduler. */
const recordingPod = (name: string, file: string, namespace: string) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: {
      nodeSelector: { 'kubernetes.io/hostname': name },
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image: 'host', command: ['sh', '-c', `echo $$$$ >> '${file}'; exec sleep 3600`] }],
    },
  });

const isGone = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
};

onLinux(
  'keelson up with several nodes: pods are adopted after SIGKILL, and keelson down ends everything',
  async (t) => {
    t.timeout(240_000);
    const data = await temporaryDirectory();
    t.teardown(() => removeDirectory(data));
    const words = ['--log-level', 'warn', '--nodes', '2', '--fake-nodes', '2'];
    let server = await startKeelson(data, words, 'up');
    t.teardown(() => server.kill());
    const kubectl = new Kubectl(command ?? '', server.kubeconfig, data);
    const nodes = [nodeName, `${nodeName}-2`];
    const readyNodes = async () =>
      (await kubectl.try(['get', 'nodes', '--no-headers'])).stdout.match(/ Ready /g)?.length;
    await eventually(async () => (await readyNodes()) === 4, waitMs);
    t.is(server.output().stdout, `keelson: serving on ${server.url}\n`);
    t.true(server.output().stderr.includes(`Kubeconfig: ${server.kubeconfig}\n`), server.output().stderr);

    await kubectl.run(['create', 'namespace', 'short']);
    const files: string[] = [];
    for (const namespace of ['default', 'short'])
      for (const name of nodes) {
        const file = join(data, `${namespace}-${name}`);
        files.push(file);
        await kubectl.run(['create', '-f', '-'], { input: recordingPod(name, file, namespace) });
      }
    await kubectl.run([
      'run',
      'fake',
      '--image=nginx',
      '--overrides={"spec":{"nodeSelector":{"keelson.dev/fake":"true"}}}',
    ]);
    for (const namespace of ['default', 'short'])
      await kubectl.run(['wait', '-n', namespace, '--for=condition=Ready', 'pods', '--all', '--timeout=80s']);
    t.regex(
      await kubectl.run(['get', 'pod', 'fake', '-o', 'wide', '--no-headers']),
      /Running.*10\.128\.\d+\.1 +fake-[12]/,
    );
    const pids = await Promise.all(
      files.map(async (file) => Number(await eventually(() => readFile(file, 'utf8'), waitMs))),
    );

    t.regex(
      await kubectl.run(['top', 'nodes', '--no-headers']),
      new RegExp(`^${nodeName}-2 +\\d+m +\\d+% +\\d+Mi`, 'm'),
    );
    t.regex(
      await kubectl.run(['top', 'pods', '-A', '--containers', '--no-headers']),
      /^short +\S+-2 +main +0m +\d+Mi/m,
    );

    await server.kill();
    t.false(pids.some(isGone));
    server = await startKeelson(data, [...words, '--listen', new URL(server.url).host], 'up');
    await eventually(async () => (await readyNodes()) === 4, waitMs);
    await kubectl.run(['delete', 'namespace', 'short', '--timeout=80s']);
    t.is((await kubectl.run(['get', 'pods,secrets,serviceaccounts,configmaps,events', '-n', 'short'])).trim(), '');
    t.deepEqual(pids.map(isGone), [false, false, true, true]);
    const started = await Promise.all(files.map((file) => readFile(file, 'utf8')));
    t.deepEqual(
      started,
      pids.map((pid) => `${pid}\n`),
      'no pod was started twice',
    );
    t.regex(await kubectl.run(['get', 'pods', '--no-headers']), /^(\S+ +1\/1 +Running +0 .*\n){3}$/);

    const down = await runKeelson(['down', '--data', data]);
    t.deepEqual(
      [down.code, down.stdout, down.stderr],
      [0, `keelson: stopped the server, process ${server.pid}\nkeelson: stopped 2 pods\n`, ''],
    );
    t.true(pids.every(isGone) && isGone(server.pid));
    const again = await runKeelson(['down', '--data', data]);
    t.deepEqual([again.code, again.stdout], [0, `keelson: nothing of ${data} is running\n`]);
  },
);

onLinux(
  'keelson up: a stateful set with storage limits keeps its data in volumes, which are removed with their claims',
  async (t) => {
    t.timeout(180_000);
    const data = await temporaryDirectory();
    t.teardown(() => removeDirectory(data));
    const server = await startKeelson(data, ['--log-level', 'warn'], 'up');
    t.teardown(() => server.kill());
    const kubectl = new Kubectl(command ?? '', server.kubeconfig, data);
    t.teardown(() => runKeelson(['down', '--data', data]));
    const template = {
      metadata: { name: 'data' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    };
    const labels = { app: 'db' };
    const container = {
      name: 'main',
      image: 'host',
      command: ['sh', '-c', `echo started >> '${join(data, 'mounted')}/log'; exec sleep 600`],
      resources: { requests: { 'ephemeral-storage': '50Mi' }, limits: { 'ephemeral-storage': '2Gi' } },
      volumeMounts: [
        { name: 'data', mountPath: join(data, 'mounted') },
        { name: 'memory', mountPath: join(data, 'memory') },
      ],
    };
    const volumes = [{ name: 'memory', emptyDir: { medium: 'Memory' } }];
    const set = {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'db' },
      spec: {
        serviceName: 'db',
        replicas: 1,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { terminationGracePeriodSeconds: 1, containers: [container], volumes },
        },
        volumeClaimTemplates: [template],
      },
    };
    await kubectl.run(['apply', '-f', '-'], { input: JSON.stringify(set) });
    await kubectl.run(['rollout', 'status', 'statefulset/db', '--timeout=60s']);
    t.regex(await kubectl.run(['get', 'storageclass']), /^keelson \(default\)\s+keelson\.dev\/directory\s+Delete/m);
    t.regex(await kubectl.run(['get', 'pvc', '--no-headers']), /^data-db-0\s+Bound\s+pvc-\S+\s+1Gi\s+RWO\s+keelson\s/);
    const volume = (await kubectl.run(['get', 'pvc', 'data-db-0', '-o', 'jsonpath={.spec.volumeName}'])).trim();
    const shown = await kubectl.run(['get', 'pv', volume, '--no-headers']);
    t.regex(shown, /1Gi\s+RWO\s+Delete\s+Bound\s+default\/data-db-0\s+keelson\s/);
    const log = join(data, 'volumes', volume, 'log');
    t.is(await eventually(() => readFile(log, 'utf8'), waitMs), 'started\n');
    await kubectl.run(['delete', 'pod', 'db-0', '--timeout=60s']);
    await eventually(async () => (await readFile(log, 'utf8')) === 'started\nstarted\n', waitMs);

    await kubectl.run(['delete', 'pvc', 'data-db-0', '--wait=false']);
    t.regex(await kubectl.run(['get', 'pvc', '--no-headers']), /^data-db-0\s+Terminating\s/);
    await kubectl.run(['delete', 'statefulset', 'db']);
    await kubectl.run(['wait', '--for=delete', 'pvc/data-db-0', `pv/${volume}`, '--timeout=60s']);
    t.false(existsSync(join(data, 'volumes', volume)));
    t.is(await server.stop(), 0, server.output().stderr);
  },
);

test('keelson up --agent=false runs no node, and keelson serve rejects --agent', async (t) => {
  const data = await temporaryDirectory();
  t.teardown(() => removeDirectory(data));
  const server = await startKeelson(data, ['--agent=false', '--insecure'], 'up');
  t.teardown(() => server.kill());
  const list = (await (await fetch(`${server.url}/api/v1/nodes`)).json()) as { items: unknown[] };
  t.deepEqual(list.items, []);
  t.is(await server.stop(), 0);
  t.false(existsSync(join(data, 'node')));
  const refused = await runKeelson(['serve', '--agent', '--data', data]);
  t.deepEqual(
    [refused.code, refused.stderr],
    [2, 'keelson: --agent is an option of keelson up; keelson serve runs no node\n'],
  );
});

test('two keelson up on one machine use different ranges of cluster addresses, and keep them', async (t) => {
  const cluster = async () => {
    const data = await temporaryDirectory();
    t.teardown(() => removeDirectory(data));
    const start = async () => {
      const server = await startKeelson(data, ['--agent=false', '--insecure', '--ingress-listen=off'], 'up');
      t.teardown(() => server.kill());
      return server;
    };
    return { data, start, server: await start() };
  };
  /** The first two numbers of the address of a new service. */
  const rangeOf = async (url: string) => {
    const body = JSON.stringify({ metadata: { generateName: 'web-' }, spec: { ports: [{ port: 80 }] } });
    const headers = { 'content-type': 'application/json' };
    const path = `${url}/api/v1/namespaces/default/services`;
    const answer = await fetch(path, { method: 'POST', headers, body });
    t.is(answer.status, 201);
    const { spec } = (await answer.json()) as { spec: { clusterIP: string } };
    return spec.clusterIP.split('.', 2).join('.');
  };
  const [first, second] = [await cluster(), await cluster()];
  const range = await rangeOf(second.server.url);
  t.not(await rangeOf(first.server.url), range);
  for (const { server } of [first, second]) t.is(await server.stop(), 0, server.output().stderr);
  const again = await second.start();
  t.is(await rangeOf(again.url), range);
  t.is(await again.stop(), 0);
});
