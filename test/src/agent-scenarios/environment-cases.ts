import type { coreV1 } from '@keelson/kinds';

export interface EnvironmentCase {
  readonly title: string;
  readonly env?: readonly coreV1.EnvVar[];
  readonly envFrom?: readonly coreV1.EnvFromSource[];
  /** Further words of the container. */
  readonly container?: Partial<coreV1.Container>;
  /** The output of the container. In commands of pods `$$` stands for one `$`. */
  readonly echo: string;
  /** `{…}` is replaced by an allocatable amount of the node, or a value of the pod in the API. */
  readonly prints: string;
}

const field = (name: string, fieldPath: string): coreV1.EnvVar => ({ name, valueFrom: { fieldRef: { fieldPath } } });
const resource = (name: string, word: string, divisor?: string): coreV1.EnvVar => ({
  name,
  valueFrom: { resourceFieldRef: { resource: word, ...(divisor && { divisor }) } },
});
const limited = (limits: Readonly<Record<string, string>>, requests = limits): Partial<coreV1.Container> => ({
  resources: { limits: { ...limits }, requests: { ...requests } },
});

/** The lists "downward env", "expansion", and what variables take from objects. */
export const environmentCases: readonly EnvironmentCase[] = [
  {
    title: 'downward variables: name, namespace and address of the pod',
    env: [field('NAME', 'metadata.name'), field('SPACE', 'metadata.namespace'), field('IP', 'status.podIP')],
    echo: '$NAME $SPACE $IP',
    prints: '{name} default 192.0.2.1',
  },
  {
    title: 'downward variables: the address of the node',
    env: [field('HOST', 'status.hostIP')],
    echo: '$HOST',
    prints: '192.0.2.1',
  },
  {
    title: 'downward variables: limits and requests of CPU and memory',
    env: [
      resource('A', 'limits.cpu'),
      resource('B', 'limits.memory'),
      resource('C', 'requests.cpu', '1m'),
      resource('D', 'requests.memory', '1Mi'),
    ],
    container: limited({ cpu: '1250m', memory: '64Mi' }, { cpu: '250m', memory: '32Mi' }),
    echo: '$A $B $C $D',
    prints: '2 67108864 250 32',
  },
  {
    title: 'downward variables: without limits of CPU and memory, the allocatable amount of the node',
    env: [resource('A', 'limits.cpu'), resource('B', 'limits.memory')],
    echo: '$A $B',
    prints: '{cpu} {memory}',
  },
  { title: 'downward variables: the uid of the pod', env: [field('ID', 'metadata.uid')], echo: '$ID', prints: '{uid}' },
  {
    title: 'downward variables: limit and request of ephemeral storage',
    env: [resource('A', 'limits.ephemeral-storage', '1Mi'), resource('B', 'requests.ephemeral-storage', '1Mi')],
    container: limited({ 'ephemeral-storage': '64Mi' }, { 'ephemeral-storage': '32Mi' }),
    echo: '$A $B',
    prints: '64 32',
  },
  {
    title: 'expansion: variables refer to variables',
    env: [
      { name: 'FOO', value: 'foo' },
      { name: 'BAR', value: 'bar' },
      { name: 'BOTH', value: '$(FOO);;$(BAR)' },
    ],
    echo: '"$BOTH"',
    prints: 'foo;;bar',
  },
  {
    title: 'expansion: variables in the command',
    env: [{ name: 'WORD', value: 'of-the-command' }],
    container: { command: ['/bin/sh', '-c', 'echo $(WORD)'] },
    echo: '',
    prints: 'of-the-command',
  },
  {
    title: 'expansion: variables in the arguments',
    env: [{ name: 'WORD', value: 'of-the-arguments' }],
    container: { command: ['/bin/sh', '-c'], args: ['echo $(WORD)'] },
    echo: '',
    prints: 'of-the-arguments',
  },
  {
    title: 'variables of a config map: one key',
    env: [{ name: 'COLOUR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'colour' } } }],
    echo: '$COLOUR',
    prints: 'blue',
  },
  {
    title: 'variables of a config map: every key, with a prefix',
    envFrom: [{ prefix: 'P_', configMapRef: { name: 'settings' } }],
    echo: '$P_colour $P_shape',
    prints: 'blue round',
  },
  {
    title: 'variables of a secret: one key',
    env: [{ name: 'WORD', valueFrom: { secretKeyRef: { name: 'key', key: 'word' } } }],
    echo: '$WORD',
    prints: 'sesame',
  },
  {
    title: 'variables of a secret: every key',
    envFrom: [{ secretRef: { name: 'key' } }],
    echo: '$user $word',
    prints: 'me sesame',
  },
  {
    title: 'variables of services of the namespace',
    echo: '$NEAR_SERVICE_HOST $NEAR_SERVICE_PORT $NEAR_PORT_80_TCP_PROTO $NEAR_PORT',
    prints: '127.96.0.77 80 tcp tcp://127.96.0.77:80',
  },
];
