import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { quantityMilliValue, quantityValue } from '@keelson/core';
import { ConfigMap, type coreV1, Namespace, Node, Pod, Secret } from '@keelson/kinds';
import { eventually } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { nodeName, type Stage, sharedStage, shell, stay, waitMs } from '../../src/agent-scenarios/stage.ts';
import {
  allTogether,
  annotations,
  base64,
  type Change,
  configMaps,
  groupId,
  type Identity,
  identities,
  labels,
  ownVolume,
  projectedVolume,
  secrets,
  sourceCases,
  userId,
} from '../../src/agent-scenarios/volume-cases.ts';
import { openProcessEngine } from '../../src/real-engines.ts';

const stage = sharedStage('volumes in containers', {
  open: openProcessEngine,
});

/** A test with a volume that a pod of its identity has mounted. */
interface Mounted {
  readonly volume: coreV1.Volume;
  readonly as: Identity;
  readonly subPath?: string;
}
const mounted: Mounted[] = [];

/** Adds a volume to a pod and returns its path. To be called before the first test begins. */
function mount(as: Identity, volume: Omit<coreV1.Volume, 'name'>, subPath?: string): string {
  const name = `v${mounted.length}`;
  mounted.push({ volume: { name, ...volume }, as, ...(subPath !== undefined && { subPath }) });
  return `/mnt/${name}`;
}

const podOf = (as: Identity) => `volumes-${as.toLowerCase()}`;
let opening: Promise<Stage> | undefined;

/** One pod for each identity, with all volumes of its tests. */
async function open(): Promise<Stage> {
  if (stage === undefined) throw new Error('there is no stage');
  const here = await stage();
  const client = here.plane.client.bind(here.plane);
  await writeFile(join(here.folder, 'shared/file'), 'of the host\n');
  await mkdir(join(here.folder, 'shared/there'));
  await writeFile(join(here.folder, 'shared/there/inner'), 'inner\n');
  for (const [name, data] of Object.entries(configMaps))
    await client(ConfigMap).namespace('default').create({ metadata: { name }, data });
  await client(Namespace).create({ metadata: { name: 'other' } });
  const secretsOf = (namespace: string) => client(Secret).namespace(namespace);
  for (const [name, data] of Object.entries(secrets)) {
    const encoded = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, base64(value)]));
    await secretsOf('default').create({ metadata: { name }, data: encoded });
    await secretsOf('other').create({ metadata: { name }, data: { user: base64('them') } });
  }
  for (const as of Object.keys(identities) as Identity[]) {
    const own = mounted.filter((one) => one.as === as);
    await here.create(
      podOf(as),
      {
        hostNetwork: true,
        securityContext: identities[as],
        volumes: own.map(({ volume }) => ({
          ...volume,
          ...(volume.hostPath && { hostPath: { ...volume.hostPath, path: join(here.folder, volume.hostPath.path) } }),
        })),
        containers: [
          shell(stay, {
            volumeMounts: own.map(({ volume: { name }, subPath }) => ({
              name,
              mountPath: `/mnt/${name}`,
              ...(subPath !== undefined && { subPath }),
            })),
          }),
          shell(stay, {
            name: 'measured',
            resources: { limits: { cpu: '1250m', memory: '64Mi' }, requests: { cpu: '250m', memory: '32Mi' } },
          }),
        ],
      },
      { labels, annotations },
    );
  }
  for (const as of Object.keys(identities) as Identity[]) await here.reaches(podOf(as), 'Running');
  return here;
}

const opened = () => (opening ??= open());

/** Files below a directory as `path mode content`, with few processes. Line ends within a file are shown as spaces. */
const show = (directory: string) => `cd ${directory} || exit
find -L . -path './..*' -prune -o -type f -exec stat -Lc '%n %a' {} + | sort | while read -r file mode; do
  text=
  while IFS= read -r line || [ -n "$line" ]; do text="$text $line"; done < "$file"
  echo "\${file#./} $mode\${text:- }"
done`;

async function seen(here: Stage, as: Identity, directory: string): Promise<readonly string[]> {
  return (await here.inside(podOf(as), show(directory))).split('\n').slice(0, -1);
}

/** Placeholders for amounts of this machine. */
async function filledIn(here: Stage, lines: readonly string[]): Promise<readonly string[]> {
  const { allocatable = {} } = (await here.plane.client(Node).get(nodeName)).status ?? {};
  const cpu = String((quantityMilliValue(String(allocatable['cpu'])) + 999n) / 1000n);
  const memory = String(quantityValue(String(allocatable['memory'])));
  return lines.map((line) => line.replace('CPU OF THE NODE', cpu).replace('MEMORY OF THE NODE', memory));
}

const changes: Readonly<Record<Change, (here: Stage) => Promise<unknown>>> = {
  'config map': ({ plane }) =>
    plane
      .client(ConfigMap)
      .namespace('default')
      .patch('changing', 'merge', { data: { word: 'two' } }),
  'config map comes': ({ plane }) =>
    plane
      .client(ConfigMap)
      .namespace('default')
      .create({ metadata: { name: 'late' }, data: { word: 'here' } }),
  'secret comes': ({ plane }) =>
    plane
      .client(Secret)
      .namespace('default')
      .create({ metadata: { name: 'late' }, data: { word: base64('hush') } }),
  labels: ({ plane }) => patchPod(plane, { labels: { part: 'two' } }),
  annotations: ({ plane }) => patchPod(plane, { annotations: { note: 'second' } }),
};

const patchPod = (plane: Stage['plane'], metadata: Pod['metadata']) =>
  plane.client(Pod).namespace('default').patch(podOf('root'), 'merge', { metadata });

/** The mount paths of changed objects, with their content before the change. */
const changing = new Map<Change, { readonly directory: string; readonly before: readonly string[] }[]>();
const made = new Map<Change, Promise<unknown>>();

/** Changes an object once, after all mounts have had the content before the change. */
function change(t: ExecutionContext, here: Stage, what: Change): Promise<unknown> {
  const make = async () => {
    for (const { directory, before } of changing.get(what) ?? [])
      t.deepEqual(await seen(here, 'root', directory), before);
    await changes[what](here);
  };
  const once = made.get(what) ?? make();
  made.set(what, once);
  return once;
}

if (stage !== undefined) {
  for (const one of sourceCases) {
    const { list, title, as = 'root', expected, change: changed, volumes = 1 } = one;
    for (const [form, volume] of [
      ['in a volume of its own', ownVolume(one)],
      ['in a projected volume', projectedVolume(one)],
    ] as const) {
      const places = Array.from({ length: volumes }, () => mount(as, volume));
      if (changed !== undefined) {
        const before = places.map((directory) => ({ directory, before: expected }));
        changing.set(changed.what, [...(changing.get(changed.what) ?? []), ...before]);
      }
      test(`${list} ${form}: ${title}`, async (t) => {
        t.timeout(2 * waitMs);
        const here = await opened();
        const wanted = changed?.seen ?? (await filledIn(here, expected));
        if (changed !== undefined) {
          await change(t, here, changed.what);
          const after = wanted.join('|');
          await eventually(async () => (await seen(here, as, places[0] ?? '')).join('|') === after, waitMs).catch(
            () => {},
          );
        }
        for (const place of places) t.deepEqual(await seen(here, as, place), wanted);
      });
    }
  }

  const together = mount('root', { projected: { sources: [...allTogether.volume.projected.sources] } });
  test('projected volume: config map, secret and downward API in one directory', async (t) => {
    t.timeout(2 * waitMs);
    t.deepEqual(await seen(await opened(), 'root', together), allTogether.expected);
  });

  const media = [
    ['on disk', {}],
    ['in memory', { medium: 'Memory' }],
  ] as const;
  /** The file system of a directory, as reported by stat. */
  const directoryFacts = (directory: string) =>
    `[ "$(stat -fc %T ${directory})" = tmpfs ] && echo tmpfs || echo disk; stat -c '%a %g' ${directory}`;
  for (const [where, emptyDir] of media) {
    const plain = mount('root', { emptyDir });
    test(`emptyDir ${where}: all users may write to it`, async (t) => {
      t.timeout(2 * waitMs);
      const [kind, mode] = (await (await opened()).inside(podOf('root'), directoryFacts(plain))).split('\n');
      // The scratch folder of a test may be in memory as well.
      if (where === 'in memory') t.is(kind, 'tmpfs');
      t.is(mode, '777 0');
    });
    const grouped = mount('rootInGroup', { emptyDir });
    test(`emptyDir ${where}: with fsGroup it belongs to the group, which new files inherit`, async (t) => {
      t.timeout(2 * waitMs);
      const script = `${directoryFacts(grouped)}; umask 022; echo x > ${grouped}/f; stat -c '%a %u %g' ${grouped}/f`;
      const [, directory, file] = (await (await opened()).inside(podOf('rootInGroup'), script)).split('\n');
      t.is(directory, `2777 ${groupId}`);
      t.is(file, `644 0 ${groupId}`);
    });
    for (const as of ['root', 'user'] as const) {
      for (const mode of ['644', '666', '777']) {
        const directory = mount(as, { emptyDir });
        test(`emptyDir ${where}: ${as === 'root' ? 'root' : 'a user'} keeps a file of mode ${mode}`, async (t) => {
          t.timeout(2 * waitMs);
          const script = `cd ${directory} && echo content > f && chmod ${mode} f && stat -c '%a %u' f && cat f`;
          const user = as === 'root' ? 0 : userId;
          t.is(await (await opened()).inside(podOf(as), script), `${mode} ${user}\ncontent\n`);
        });
      }
    }
  }

  for (const [as, user] of [
    ['rootInGroup', 0],
    ['userInGroup', userId],
  ] as const) {
    const directory = mount(as, { emptyDir: {} });
    test(`emptyDir: new files belong to the group of the pod, created by ${user === 0 ? 'root' : 'a user'}`, async (t) => {
      t.timeout(2 * waitMs);
      const script = `echo x > ${directory}/f && stat -c '%u %g' ${directory}/f`;
      t.is(await (await opened()).inside(podOf(as), script), `${user} ${groupId}\n`);
    });
  }

  const deepInGroup = mount('userInGroup', { emptyDir: {} }, 'new/er');
  test('emptyDir: a missing subPath is created like the volume, with its group', async (t) => {
    t.timeout(2 * waitMs);
    const script = `stat -c '%a %g' ${deepInGroup}; echo x > ${deepInGroup}/f && stat -c %g ${deepInGroup}/f`;
    t.is(await (await opened()).inside(podOf('userInGroup'), script), `2777 ${groupId}\n${groupId}\n`);
  });

  const groupInMemory = mount('rootInGroup', { emptyDir: { medium: 'Memory' } });
  test('emptyDir in memory: a file of mode 644 belongs to the group of the pod', async (t) => {
    t.timeout(2 * waitMs);
    const script = `cd ${groupInMemory} && echo content > f && chmod 644 f && stat -c '%a %u %g' f && cat f`;
    t.is(await (await opened()).inside(podOf('rootInGroup'), script), `644 0 ${groupId}\ncontent\n`);
  });

  const hostModes = mount('root', { hostPath: { path: 'shared', type: 'Directory' } });
  test('hostPath: the directory is that of the host, with its mode', async (t) => {
    t.timeout(2 * waitMs);
    t.is(
      await (await opened()).inside(podOf('root'), `stat -c %a ${hostModes}; cat ${hostModes}/file`),
      '755\nof the host\n',
    );
  });

  const again = mount('root', { hostPath: { path: 'shared' } });
  test('hostPath: a file written in one mount is read in another', async (t) => {
    t.timeout(2 * waitMs);
    t.is(
      await (await opened()).inside(podOf('root'), `echo new > ${again}/written; cat ${hostModes}/written`),
      'new\n',
    );
  });

  for (const [title, subPath, script, expected] of [
    ['a missing subPath is created', 'made/here', (place: string) => `echo x > ${place}/f; cat ${place}/f`, 'x\n'],
    ['a subPath that is a directory', 'there', (place: string) => `ls ${place}; cat ${place}/inner`, 'inner\ninner\n'],
    ['a subPath that is a file', 'file', (place: string) => `cat ${place}`, 'of the host\n'],
  ] as const) {
    const place = mount('root', { hostPath: { path: 'shared' } }, subPath);
    test(`hostPath: ${title}`, async (t) => {
      t.timeout(2 * waitMs);
      t.is(await (await opened()).inside(podOf('root'), script(place)), expected);
    });
  }
}
