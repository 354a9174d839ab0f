import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Event, Node, Pod } from '@keelson/kinds';
import { eventually, startTestPlane } from '@keelson/testing';
import test from 'ava';

const binary = fileURLToPath(
  new URL('../../../../packages/keelson-agent/dist/bundle/keelson-agent.js', import.meta.url),
);
const waitMs = 30_000;

const kubeconfig = (url: string) =>
  JSON.stringify({
    'current-context': 'a',
    contexts: [{ name: 'a', context: { cluster: 'c', user: '' } }],
    clusters: [{ name: 'c', cluster: { server: url } }],
  });

// The process runtime needs it.
const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux(
  'keelson-agent against a server: the node is ready, bound and static pods run, and deleted pods end',
  async (t) => {
    t.timeout(90_000);
    const plane = await startTestPlane();
    t.teardown(() => plane.close());
    const { url } = await plane.listen();
    const directory = await mkdtemp(join(tmpdir(), 'keelson-agent-'));
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    const manifests = join(directory, 'manifests');
    await mkdir(manifests);
    await writeFile(join(directory, 'clusterconfig'), kubeconfig(url));
    const pod = (name: string, extra: object = {}) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: {
        hostNetwork: true,
        terminationGracePeriodSeconds: 1,
        containers: [
          {
            name: 'main',
            image: 'host',
            command: ['sh', '-c', `echo $$$$ > ${directory}/${name}.pid; exec sleep 300`],
          },
        ],
        ...extra,
      },
    });
    await writeFile(join(manifests, 'static.json'), JSON.stringify(pod('static')));
    const agent = spawn(
      process.execPath,
      [
        binary,
        `--clusterconfig=${directory}/clusterconfig`,
        `--pod-manifest-path=${manifests}`,
        `--root-dir=${directory}/root`,
        `--cert-dir=${directory}/pki`,
        '--address=127.0.0.1',
        '--port=0',
        '--read-only-port=0',
        '--healthz-port=0',
        '--stats-port=0',
        '--hostname-override=n1',
        '--node-labels=zone=a',
        '--register-with-taints=only=me:NoSchedule',
        '--provider-id=test://n1',
        '--fail-swap-on=false',
        '--make-iptables-util-chains=false',
        // The load of this machine has no effect.
        '--eviction-hard=',
      ],
      {
        env: { ...process.env, KEELSON_AGENT_RUNTIME: 'process', KEELSON_AGENT_LOG_ROOT: join(directory, 'log') },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    let stderr = '';
    agent.stderr.on('data', (chunk) => {
      stderr += String(chunk);
    });
    t.teardown(() => agent.kill('SIGKILL'));
    t.teardown(async () => {
      for (const name of ['static', 'bound']) {
        try {
          process.kill(Number(await readFile(join(directory, `${name}.pid`), 'utf8')), 'SIGKILL');
        } catch {
          // Ended, as it should be.
        }
      }
    });
    const within = <T>(probe: () => Promise<T | undefined | false>) =>
      eventually(probe, waitMs).catch((error: Error) => {
        throw new Error(`${error.message}; output of the agent: ${stderr}`, { cause: error.cause });
      });

    const node = await within(async () => {
      const found = await plane.client(Node).get('n1');
      return found.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') && found;
    });
    t.is(node.metadata?.labels?.['zone'], 'a');
    t.like(node.spec, { providerID: 'test://n1' });
    t.true(node.spec?.taints?.some(({ key, effect }) => key === 'only' && effect === 'NoSchedule'));

    const pods = plane.client(Pod).namespace('default');
    await pods.create({
      ...pod('bound', { nodeName: 'n1', hostNetwork: true, terminationGracePeriodSeconds: 1 }),
    } as never);
    const runs = (name: string) =>
      within(async () => {
        const found = await pods.get(name);
        return found.status?.phase === 'Running' && found;
      });
    const bound = await runs('bound');
    t.truthy(bound.status?.podIP);
    t.truthy(bound.status?.startTime);
    const mirror = await runs('static-n1');
    t.truthy(
      mirror.metadata?.annotations?.['kubernetes.io/config.mirror'],
      'the status of a static pod stands at its mirror',
    );
    const events = await within(async () => {
      const { items } = await plane.client(Event).namespace('default').list();
      return (
        items.some(({ reason, involvedObject }) => reason === 'Started' && involvedObject?.name === 'bound') && items
      );
    });
    t.true(events.every(({ source }) => source?.component === 'keelson-agent' && source.host === 'n1'));

    // A container runs before its command has printed anything.
    const pid = await within(async () => Number(await readFile(join(directory, 'bound.pid'), 'utf8').catch(() => '')));
    t.notThrows(() => process.kill(pid, 0));
    await pods.delete('bound');
    await within(async () => (await pods.get('bound').catch(() => undefined)) === undefined);
    t.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
    await rm(join(manifests, 'static.json'));
    await within(async () => (await pods.get('static-n1').catch(() => undefined)) === undefined);
    await within(async () => (await readdir(join(directory, 'root', 'runtime', 'containers'))).length === 0);
    agent.kill('SIGTERM');
    t.is(await new Promise((resolve) => agent.once('exit', resolve)), 0, stderr);
    t.false(stderr.includes('"level":"error"'), stderr);
  },
);
