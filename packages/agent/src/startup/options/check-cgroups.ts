import { type Check, eachOf, oneOf } from './option-checks.ts';

type Context = Parameters<Check>[0];

function* allocatable({ values }: Context): Iterable<string> {
  const enforced = values['enforce-node-allocatable'];
  if (enforced.length > 0 && !values['cgroups-per-qos'])
    yield '--enforce-node-allocatable needs --cgroups-per-qos; give it empty otherwise';
  for (const name of ['system-reserved', 'cluster-reserved'] as const) {
    if (enforced.includes(name) && values[`${name}-cgroup`] === '')
      yield `--enforce-node-allocatable=${name} needs --${name}-cgroup`;
  }
}

function* qosReserved({ values }: Context): Iterable<string> {
  const reserved = values['experimental-qos-reserved'];
  if (reserved.size > 0 && !values['cgroups-per-qos']) yield '--experimental-qos-reserved needs --cgroups-per-qos';
  for (const [resource, share] of reserved) {
    if (resource !== 'memory')
      yield `--experimental-qos-reserved: only memory can be reserved, not ${JSON.stringify(resource)}`;
    const percent = Number(/^(\d{1,3})%$/.exec(share)?.[1]);
    if (!(percent <= 100))
      yield `--experimental-qos-reserved: memory must be between 0% and 100%, not ${JSON.stringify(share)}`;
  }
}

const groupOptions = [
  'cgroup-root',
  'agent-cgroups',
  'runtime-cgroups',
  'system-cgroups',
  'cluster-reserved-cgroup',
  'system-reserved-cgroup',
] as const;

/** Options whose cgroup must not be the root: the cgroup is limited, or receives the processes of the root. */
const belowRoot = ['system-cgroups', 'cluster-reserved-cgroup', 'system-reserved-cgroup'] as const;

function* groups({ values }: Context): Iterable<string> {
  for (const name of groupOptions) {
    const path = values[name];
    if (path === '') continue;
    if (!path.startsWith('/') || path.split('/').some((part) => part === '..' || part === '.'))
      yield `--${name} must be an absolute cgroup such as /group, not ${JSON.stringify(path)}`;
  }
  for (const name of belowRoot) {
    if (/^\/+$/.test(values[name])) yield `--${name} must not be the root of the cgroups; name a cgroup below it`;
  }
  if (values['system-cgroups'] !== '' && values['cgroup-root'] === '') yield '--system-cgroups needs --cgroup-root';
}

/** Checks of cgroups of pods, of processes, and of reserved resources. */
export const cgroupChecks: readonly Check[] = [
  eachOf(['pods', 'system-reserved', 'cluster-reserved'], 'enforce-node-allocatable'),
  oneOf('cgroup-driver', 'cgroupfs', 'systemd'),
  allocatable,
  qosReserved,
  groups,
];

/** Warnings about cgroup options that were given and have no effect in combination with the others. */
export function cgroupWarnings({ values, given }: Pick<Context, 'values' | 'given'>): string[] {
  const warnings: string[] = [];
  if (given.has('cgroup-driver') && !values['cgroups-per-qos'])
    warnings.push('--cgroup-driver has no effect without --cgroups-per-qos');
  for (const name of ['system-reserved', 'cluster-reserved'] as const) {
    if (given.has(`${name}-cgroup`) && !values['enforce-node-allocatable'].includes(name))
      warnings.push(`--${name}-cgroup has no effect without --enforce-node-allocatable=${name}`);
  }
  return warnings;
}
