import { flag, integer, list, text, textMap, time, wrappedCounter } from '../wire/kinds.ts';
import { at, message } from '../wire/message.ts';

// Messages of CRI that several calls share. The field numbers are the same in `runtime.v1` and `runtime.v1alpha2`.

export const Nothing = message({});

/** Some versions of the protocol declare `value` as string, others as bytes; both have the same encoding. */
export const KeyValue = message({ key: at(1, text), value: at(2, text) });

export const NamespaceOption = message({ network: at(1, integer), pid: at(2, integer), ipc: at(3, integer) });
export const NamespaceMode = { pod: 0, container: 1, node: 2 } as const;

export const SelinuxOption = message({ user: at(1, text), role: at(2, text), type: at(3, text), level: at(4, text) });

export const SecurityProfileMessage = message({ profileType: at(1, integer), localhostRef: at(2, text) });

export const LinuxContainerResources = message({
  cpuPeriod: at(1, integer),
  cpuQuota: at(2, integer),
  cpuShares: at(3, integer),
  memoryLimitInBytes: at(4, integer),
  oomScoreAdj: at(5, integer),
  cpusetCpus: at(6, text),
  cpusetMems: at(7, text),
  unified: at(9, textMap),
});

export const ImageSpec = message({ image: at(1, text) });

export const FilesystemUsageMessage = message({
  timestamp: at(1, time),
  fsId: at(2, message({ mountpoint: at(1, text) })),
  usedBytes: at(3, wrappedCounter),
  inodesUsed: at(4, wrappedCounter),
});

export const VersionRequest = message({ version: at(1, text) });
export const VersionResponse = message({
  version: at(1, text),
  runtimeName: at(2, text),
  runtimeVersion: at(3, text),
  runtimeApiVersion: at(4, text),
});

export const RuntimeConditionMessage = message({
  type: at(1, text),
  status: at(2, flag),
  reason: at(3, text),
  message: at(4, text),
});
export const StatusRequest = message({ verbose: at(1, flag) });
export const StatusResponse = message({
  status: at(1, message({ conditions: at(1, list(RuntimeConditionMessage)) })),
  info: at(2, textMap),
});

export const UpdateRuntimeConfigRequest = message({
  runtimeConfig: at(1, message({ networkConfig: at(1, message({ podCidr: at(1, text) })) })),
});
