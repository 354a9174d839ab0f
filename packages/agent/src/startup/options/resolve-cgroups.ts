import type { CgroupConfig, EnforcedShare } from '../../base/config/cgroup-config.ts';
import type { AgentOptions, OptionName } from './option-table.ts';
import type { ParsedOptions } from './parse-options.ts';

const isSet = (value: AgentOptions[OptionName]): boolean => {
  if (typeof value === 'string' || Array.isArray(value)) return value.length > 0;
  return value instanceof Map ? value.size > 0 : value === true;
};

/** Options that require cgroups when they are given and not empty. */
const requiringCgroups: readonly OptionName[] = [
  'cgroups-per-qos',
  'cgroup-root',
  'enforce-node-allocatable',
  'experimental-qos-reserved',
  'agent-cgroups',
  'runtime-cgroups',
  'system-cgroups',
];

/** The cgroup configuration of options that have been checked. */
export function resolveCgroups({ values, given }: Pick<ParsedOptions, 'values' | 'given'>): CgroupConfig {
  const root = values['cgroup-root'];
  const percent = values['experimental-qos-reserved'].get('memory');
  return {
    perQos: values['cgroups-per-qos'],
    driver: values['cgroup-driver'] as CgroupConfig['driver'],
    root: root === '' ? undefined : root,
    enforce: values['enforce-node-allocatable'] as readonly EnforcedShare[],
    clusterReservedGroup: values['cluster-reserved-cgroup'],
    systemReservedGroup: values['system-reserved-cgroup'],
    reservedMemoryPercent: percent === undefined ? undefined : Number.parseInt(percent, 10),
    agentGroup: values['agent-cgroups'],
    runtimeGroup: values['runtime-cgroups'],
    systemGroup: values['system-cgroups'],
    askedBy: requiringCgroups.find((name) => given.has(name) && isSet(values[name])),
  };
}
