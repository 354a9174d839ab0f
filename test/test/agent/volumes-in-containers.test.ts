import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigMap, type coreV1, Pod, Secret } from '@keelson/kinds';
import { createProcessRuntime } from '@keelson/runtime-process';
import { buildRoot, dockerArchive, tarOf } from '@keelson/test-support';
import { eventually, startTestPlane, type TestPlane } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { scratchDirectory, startAgentNode } from '../../src/agent-node.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');
const asRoot = (process.platform === 'linux' && process.getuid?.() === 0) || process.env['CI'] ? test : test.skip;
const waitMs = 40_000;

let plane: TestPlane;
test.before(async () => {
  plane = await startTestPlane();
});
test.after.always(() => plane.close());

/** An agent whose containers have an image of their own, so that volumes are mounted in them. */
async function setting(t: ExecutionContext, name: string) {
  t.timeout(120_000);
  const { dir, remove } = await scratchDirectory();
  t.teardown(remove);
  await mkdir(join(dir, 'root'));
  await mkdir(join(dir, 'source'));
  buildRoot(join(dir, 'root'));
  tarOf(join(dir, 'root'), join(dir, 'layer.tar'));
  dockerArchive(join(dir, 'scratch'), join(dir, 'source/app.tar'), 'app:1', [join(dir, 'layer.tar')]);
  const engine = await createProcessRuntime({
    stateDirectory: join(dir, 'runtime'),
    imageSources: [join(dir, 'source')],
    nodeIp: '192.0.2.1',
  });
  t.teardown(() => engine.runtime[Symbol.asyncDispose]());
  const node = await startAgentNode({ name, engine, api: plane.api, words: ['--sync-frequency=300ms'], dir });
  t.teardown(() => node.stop());
  const pods = plane.client(Pod).namespace('default');
  /** What the only container of a pod wrote, when it has ended. */
  const output = async (pod: string): Promise<string> => {
    const uid = (await pods.get(pod)).metadata?.uid ?? '';
    const text = await readFile(join(dir, 'log/pods', uid, 'main_0.log'), 'utf8');
    return text.replace(/^\S+ std(out|err) F /gm, '');
  };
  const create = async (pod: string, script: string, spec: Partial<coreV1.PodSpec>, mounts: coreV1.VolumeMount[]) => {
    t.teardown(async () => {
      await pods.delete(pod).catch(() => undefined);
      await eventually(async () => (await pods.get(pod).catch(() => undefined)) === undefined, waitMs);
    });
    await pods.create({
      metadata: { name: pod, labels: { app: 'web' } },
      spec: {
        nodeName: name,
        hostNetwork: true,
        restartPolicy: 'Never',
        terminationGracePeriodSeconds: 0,
        containers: [
          {
            name: 'main',
            image: 'app:1',
            imagePullPolicy: 'IfNotPresent',
            command: ['/bin/sh', '-c', script],
            volumeMounts: mounts,
          },
        ],
        ...spec,
      },
    } as Pod);
  };
  const phase = (pod: string, wanted: string) =>
    eventually(async () => (await pods.get(pod)).status?.phase === wanted, waitMs).catch(async (error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify((await pods.get(pod)).status)}`);
    });
  return { dir, create, output, phase };
}

asRoot(
  'a non-root user reads projected objects through the group of the pod, and shares the files that it writes',
  async (t) => {
    const { dir, create, output, phase } = await setting(t, 'volumes-1');
    await plane
      .client(ConfigMap)
      .namespace('default')
      .create({ metadata: { name: 'settings' }, data: { colour: 'blue' } });
    await plane
      .client(Secret)
      .namespace('default')
      .create({ metadata: { name: 'key' }, data: { word: base64('sesame') } });
    await mkdir(join(dir, 'host/sub'), { recursive: true });
    await writeFile(join(dir, 'host/sub/f'), 'of the host\n');
    await create(
      'reads',
      [
        'id -u',
        'cat /config/colour && echo',
        'cat /secret/word && echo',
        'ls -ln /secret/..data/word | { read mode links user group rest; echo $mode $user $group; }',
        'cat /all/where/name && echo',
        'cat /all/colour && echo',
        'echo mine > /empty/f && cat /again/f',
        'ls -ln /empty/f | { read mode links user group rest; echo $user $group; }',
        'cat /sub/f',
        'echo no > /sub/f || echo read-only',
        'echo no > /config/colour || echo refused',
      ].join('\n'),
      {
        securityContext: { runAsUser: 4242, runAsGroup: 4343, fsGroup: 7777 },
        volumes: [
          { name: 'config', configMap: { name: 'settings' } },
          { name: 'secret', secret: { secretName: 'key', defaultMode: 0o400 } },
          {
            name: 'all',
            projected: {
              sources: [
                { configMap: { name: 'settings' } },
                { downwardAPI: { items: [{ path: 'where/name', fieldRef: { fieldPath: 'metadata.name' } }] } },
              ],
            },
          },
          { name: 'empty', emptyDir: {} },
          { name: 'host', hostPath: { path: join(dir, 'host'), type: 'Directory' } },
        ],
      },
      [
        { name: 'config', mountPath: '/config' },
        { name: 'secret', mountPath: '/secret', readOnly: true },
        { name: 'all', mountPath: '/all' },
        { name: 'empty', mountPath: '/empty' },
        { name: 'empty', mountPath: '/again', readOnly: true },
        { name: 'host', mountPath: '/sub', subPath: 'sub', readOnly: true },
      ],
    );
    await phase('reads', 'Succeeded');
    const lines = (await output('reads')).split('\n').filter((line) => !/^\/bin\/sh: /.test(line));
    t.deepEqual(lines.slice(0, -1), [
      '4242',
      'blue',
      'sesame',
      '-r--r----- 0 7777',
      'reads',
      'blue',
      'mine',
      '4242 7777',
      'of the host',
      'read-only',
      'refused',
    ]);
  },
);

asRoot('a running container receives changes of a config map, labels and an optional secret', async (t) => {
  const { create, output, phase } = await setting(t, 'volumes-2');
  const maps = plane.client(ConfigMap).namespace('default');
  await maps.create({ metadata: { name: 'changes' }, data: { word: 'one' } });
  await create(
    'sees',
    [
      'cat /v/word && echo',
      'while [ "$(cat /v/word)" != two ]; do sleep 0.05; done; echo two',
      'while ! [ -e /v/late ]; do sleep 0.05; done; cat /v/late && echo',
      'while ! cat /v/labels 2>/dev/null | { read line; [ "$line" = \'app="changed"\' ]; }; do sleep 0.05; done; echo labels',
    ].join('\n'),
    {
      volumes: [
        {
          name: 'v',
          projected: {
            sources: [
              { configMap: { name: 'changes' } },
              { secret: { name: 'later', optional: true } },
              { downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } },
            ],
          },
        },
      ],
    },
    [{ name: 'v', mountPath: '/v' }],
  );
  await phase('sees', 'Running');
  await eventually(async () => (await output('sees')).includes('one'), waitMs);
  await maps.patch('changes', 'merge', { data: { word: 'two' } });
  await eventually(async () => (await output('sees')).includes('two'), waitMs);
  await plane
    .client(Secret)
    .namespace('default')
    .create({ metadata: { name: 'later' }, data: { late: base64('here') } });
  await eventually(async () => (await output('sees')).includes('here'), waitMs);
  await plane
    .client(Pod)
    .namespace('default')
    .patch('sees', 'merge', { metadata: { labels: { app: 'changed' } } });
  await phase('sees', 'Succeeded');
  t.is(await output('sees'), 'one\ntwo\nhere\nlabels\n');
});
