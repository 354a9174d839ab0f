import type { LinuxResources } from '@keelson/container-runtime';
import type { LinuxContainerResources } from '../api/common.ts';
import type { Fields } from '../wire/message.ts';
import { isRecord } from './is-record.ts';

type ResourcesMessage = Fields<typeof LinuxContainerResources>;

/**
 * CRI has no number of processes of its own; machines with nothing but the second version of cgroups take it under the
 * name of the file.
 */
export function toResources(resources: LinuxResources, unifiedCgroups: boolean): ResourcesMessage {
  const { pidsLimit } = resources;
  return {
    cpuPeriod: resources.cpuPeriodUs,
    cpuQuota: resources.cpuQuotaUs,
    cpuShares: resources.cpuShares,
    memoryLimitInBytes: resources.memoryLimitBytes,
    oomScoreAdj: resources.oomScoreAdjust,
    cpusetCpus: resources.cpusetCpus,
    cpusetMems: resources.cpusetMems,
    unified:
      pidsLimit !== undefined && unifiedCgroups ? { 'pids.max': pidsLimit < 0 ? 'max' : String(pidsLimit) } : undefined,
  };
}

export function fromResources(message: ResourcesMessage): LinuxResources {
  return present({
    cpuShares: message.cpuShares,
    cpuQuotaUs: message.cpuQuota,
    cpuPeriodUs: message.cpuPeriod,
    cpusetCpus: message.cpusetCpus,
    cpusetMems: message.cpusetMems,
    memoryLimitBytes: message.memoryLimitInBytes,
    oomScoreAdjust: message.oomScoreAdj,
    pidsLimit: pidsLimitOf(message.unified?.['pids.max']),
  });
}

function pidsLimitOf(file: string | undefined): number | undefined {
  if (file === 'max') return -1;
  return file !== undefined && /^\d+$/.test(file) ? Number(file) : undefined;
}

/** Resources as an OCI runtime was told to set them: what daemons show that do not tell them in CRI's own words. */
export function resourcesOfSpec(spec: unknown): LinuxResources {
  const { linux, process } = isRecord(spec) ? spec : {};
  const resources = isRecord(linux) && isRecord(linux['resources']) ? linux['resources'] : {};
  const cpu = isRecord(resources['cpu']) ? resources['cpu'] : {};
  const memory = isRecord(resources['memory']) ? resources['memory'] : {};
  const pids = isRecord(resources['pids']) ? resources['pids'] : {};
  return present({
    cpuShares: numberIn(cpu['shares']),
    cpuQuotaUs: numberIn(cpu['quota']),
    cpuPeriodUs: numberIn(cpu['period']),
    cpusetCpus: textIn(cpu['cpus']),
    cpusetMems: textIn(cpu['mems']),
    memoryLimitBytes: numberIn(memory['limit']),
    oomScoreAdjust: isRecord(process) ? numberIn(process['oomScoreAdj']) : undefined,
    pidsLimit: numberIn(pids['limit']),
  });
}

const numberIn = (value: unknown) => (typeof value === 'number' && value !== 0 ? value : undefined);
const textIn = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);

/** Without the fields that are not there. */
function present(fields: { readonly [K in keyof LinuxResources]: LinuxResources[K] | undefined }): LinuxResources {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== '' && value !== 0),
  );
}
