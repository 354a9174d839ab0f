import type { coreV1 } from '@keelson/kinds';

/** Whom a container runs as. Each has a pod of its own, in which all its cases are mounted. */
export type Identity = 'root' | 'user' | 'rootInGroup' | 'userInGroup';

export const userId = 1000;
export const groupId = 4242;

export const identities: Readonly<Record<Identity, coreV1.PodSecurityContext>> = {
  root: {},
  user: { runAsUser: userId, runAsGroup: userId },
  rootInGroup: { fsGroup: groupId },
  userInGroup: { runAsUser: userId, runAsGroup: userId, fsGroup: groupId },
};

/** A source that volumes of its own and projected volumes have alike. */
export type Source = Pick<coreV1.VolumeProjection, 'configMap' | 'secret' | 'downwardAPI'>;

/** Files as `path mode content`, in the order of their paths; `-` for what cannot be read. */
export type Files = readonly string[];

export interface SourceCase {
  readonly list: 'config map' | 'secret' | 'downward';
  readonly title: string;
  readonly source: Source;
  readonly expected: Files;
  /** Default: root. */
  readonly as?: Identity;
  /** The mode of files without one of their own. */
  readonly defaultMode?: number;
  /** In how many volumes of the pod. Default: 1. */
  readonly volumes?: number;
  /** What is changed while the container runs, and what is seen then. */
  readonly change?: { readonly what: Change; readonly seen: Files };
}

export type Change = 'config map' | 'config map comes' | 'secret comes' | 'labels' | 'annotations';

export const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** Objects that exist from the beginning. */
export const configMaps: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  settings: { colour: 'blue', shape: 'round' },
  changing: { word: 'one' },
};
export const secrets: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  key: { user: 'me', word: 'sesame' },
};
export const labels = { app: 'web', part: 'one' };
export const annotations = { note: 'first' };

const settings = (items?: coreV1.KeyToPath[]): Source => ({ configMap: { name: 'settings', ...(items && { items }) } });
const key = (items?: coreV1.KeyToPath[]): Source => ({ secret: { name: 'key', ...(items && { items }) } });
const field = (path: string, fieldPath: string, mode?: number): Source => ({
  downwardAPI: { items: [{ path, fieldRef: { fieldPath }, ...(mode !== undefined && { mode }) }] },
});
/** `measured` has requests and limits, `main` has none. */
const resource = (path: string, name: string, containerName = 'measured', divisor?: string): Source => ({
  downwardAPI: { items: [{ path, resourceFieldRef: { containerName, resource: name, ...(divisor && { divisor }) } }] },
});
const colourDeep: coreV1.KeyToPath[] = [{ key: 'colour', path: 'deep/er/colour' }];

export const sourceCases: readonly SourceCase[] = [
  {
    list: 'config map',
    title: 'one file for each key',
    source: settings(),
    expected: ['colour 644 blue', 'shape 644 round'],
  },
  {
    list: 'config map',
    title: 'a mode for all files',
    source: settings(),
    defaultMode: 0o400,
    expected: ['colour 400 blue', 'shape 400 round'],
  },
  {
    list: 'config map',
    title: 'a mode for all files, for a user of the group',
    source: settings(),
    defaultMode: 0o440,
    as: 'userInGroup',
    expected: ['colour 440 blue', 'shape 440 round'],
  },
  {
    list: 'config map',
    title: 'for a non-root user',
    source: settings(),
    as: 'user',
    expected: ['colour 644 blue', 'shape 644 round'],
  },
  {
    list: 'config map',
    title: 'for a user of the group',
    source: settings(),
    as: 'userInGroup',
    expected: ['colour 644 blue', 'shape 644 round'],
  },
  {
    list: 'config map',
    title: 'a key at a path of its own',
    source: settings(colourDeep),
    expected: ['deep/er/colour 644 blue'],
  },
  {
    list: 'config map',
    title: 'a key at a path of its own, with a mode of its own',
    source: settings([{ key: 'colour', path: 'deep/colour', mode: 0o400 }]),
    expected: ['deep/colour 400 blue'],
  },
  {
    list: 'config map',
    title: 'a key at a path of its own, for a non-root user',
    source: settings(colourDeep),
    as: 'user',
    expected: ['deep/er/colour 644 blue'],
  },
  {
    list: 'config map',
    title: 'a key at a path of its own, for a user of the group',
    source: settings(colourDeep),
    as: 'userInGroup',
    expected: ['deep/er/colour 644 blue'],
  },
  {
    list: 'config map',
    title: 'a change is propagated',
    source: { configMap: { name: 'changing' } },
    expected: ['word 644 one'],
    change: { what: 'config map', seen: ['word 644 two'] },
  },
  {
    list: 'config map',
    title: 'an optional one may be created later',
    source: { configMap: { name: 'late', optional: true } },
    expected: [],
    change: { what: 'config map comes', seen: ['word 644 here'] },
  },
  {
    list: 'config map',
    title: 'in several volumes of one pod',
    source: settings([{ key: 'shape', path: 'shape' }]),
    volumes: 2,
    expected: ['shape 644 round'],
  },
  { list: 'secret', title: 'one file for each key', source: key(), expected: ['user 644 me', 'word 644 sesame'] },
  {
    list: 'secret',
    title: 'a mode for all files',
    source: key(),
    defaultMode: 0o400,
    expected: ['user 400 me', 'word 400 sesame'],
  },
  {
    list: 'secret',
    title: 'a mode for all files, for a user of the group',
    source: key(),
    defaultMode: 0o440,
    as: 'userInGroup',
    expected: ['user 440 me', 'word 440 sesame'],
  },
  {
    list: 'secret',
    title: 'a key at a path of its own',
    source: key([{ key: 'word', path: 'deep/word' }]),
    expected: ['deep/word 644 sesame'],
  },
  {
    list: 'secret',
    title: 'a key at a path of its own, with a mode of its own',
    source: key([{ key: 'word', path: 'deep/word', mode: 0o400 }]),
    expected: ['deep/word 400 sesame'],
  },
  {
    list: 'secret',
    title: 'not the one of the same name in another namespace',
    source: { secret: { name: 'key', items: [{ key: 'user', path: 'user' }] } },
    expected: ['user 644 me'],
  },
  {
    list: 'secret',
    title: 'in several volumes of one pod',
    source: key([{ key: 'user', path: 'u' }]),
    volumes: 2,
    expected: ['u 644 me'],
  },
  {
    list: 'secret',
    title: 'an optional one may be created later',
    source: { secret: { name: 'late', optional: true } },
    expected: [],
    change: { what: 'secret comes', seen: ['word 644 hush'] },
  },
  {
    list: 'downward',
    title: 'the name of the pod',
    source: field('name', 'metadata.name'),
    expected: ['name 644 volumes-root'],
  },
  {
    list: 'downward',
    title: 'a mode for all files',
    source: field('name', 'metadata.name'),
    defaultMode: 0o400,
    expected: ['name 400 volumes-root'],
  },
  {
    list: 'downward',
    title: 'a mode for one file',
    source: field('name', 'metadata.name', 0o440),
    expected: ['name 440 volumes-root'],
  },
  {
    list: 'downward',
    title: 'the name of the pod, for a user of the group',
    source: field('name', 'metadata.name'),
    as: 'userInGroup',
    expected: ['name 644 volumes-useringroup'],
  },
  {
    list: 'downward',
    title: 'a mode for all files, for a user of the group',
    source: field('name', 'metadata.name'),
    defaultMode: 0o440,
    as: 'userInGroup',
    expected: ['name 440 volumes-useringroup'],
  },
  {
    list: 'downward',
    title: 'labels, and their change',
    source: field('labels', 'metadata.labels'),
    expected: ['labels 644 app="web" part="one"'],
    change: { what: 'labels', seen: ['labels 644 app="web" part="two"'] },
  },
  {
    list: 'downward',
    title: 'an annotation, and its change',
    source: field('note', "metadata.annotations['note']"),
    expected: ['note 644 first'],
    change: { what: 'annotations', seen: ['note 644 second'] },
  },
  { list: 'downward', title: 'the limit of CPU', source: resource('cpu', 'limits.cpu'), expected: ['cpu 644 2'] },
  {
    list: 'downward',
    title: 'the limit of memory',
    source: resource('memory', 'limits.memory'),
    expected: ['memory 644 67108864'],
  },
  {
    list: 'downward',
    title: 'the request of CPU',
    source: resource('cpu', 'requests.cpu', 'measured', '1m'),
    expected: ['cpu 644 250'],
  },
  {
    list: 'downward',
    title: 'the request of memory',
    source: resource('memory', 'requests.memory', 'measured', '1Mi'),
    expected: ['memory 644 32'],
  },
  {
    list: 'downward',
    title: 'without a limit of CPU, the allocatable amount of the node',
    source: resource('cpu', 'limits.cpu', 'main'),
    expected: ['cpu 644 CPU OF THE NODE'],
  },
  {
    list: 'downward',
    title: 'without a limit of memory, the allocatable amount of the node',
    source: resource('memory', 'limits.memory', 'main'),
    expected: ['memory 644 MEMORY OF THE NODE'],
  },
];

/** Three sources in one directory. */
export const allTogether = {
  volume: {
    projected: {
      sources: [
        settings([{ key: 'colour', path: 'all/colour' }]),
        key([{ key: 'word', path: 'all/word', mode: 0o400 }]),
        field('all/name', 'metadata.name'),
      ],
    },
  },
  expected: ['all/colour 644 blue', 'all/name 644 volumes-root', 'all/word 400 sesame'],
} as const;

/** The source as a volume of its own. */
export function ownVolume({ source, defaultMode }: SourceCase): Omit<coreV1.Volume, 'name'> {
  const mode = defaultMode === undefined ? {} : { defaultMode };
  const { configMap, secret, downwardAPI } = source;
  if (configMap) return { configMap: { ...configMap, ...mode } };
  if (secret) {
    const { name, ...rest } = secret;
    return { secret: { ...rest, ...mode, ...(name && { secretName: name }) } };
  }
  return { downwardAPI: { ...downwardAPI, ...mode } };
}

/** The source as part of a projected volume. */
export function projectedVolume({ source, defaultMode }: SourceCase): Omit<coreV1.Volume, 'name'> {
  return { projected: { sources: [source], ...(defaultMode !== undefined && { defaultMode }) } };
}
