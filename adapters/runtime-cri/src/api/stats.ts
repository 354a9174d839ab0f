import { integer, list, text, textMap, time, wrappedCounter } from '../wire/kinds.ts';
import { at, message } from '../wire/message.ts';
import { FilesystemUsageMessage } from './common.ts';
import { ContainerMetadataMessage } from './container.ts';
import { PodSandboxStatusMessage } from './sandbox.ts';

export const ListContainerStatsRequest = message({
  filter: at(1, message({ id: at(1, text), podSandboxId: at(2, text), labelSelector: at(3, textMap) })),
});

export const ContainerStatsMessage = message({
  attributes: at(
    1,
    message({
      id: at(1, text),
      metadata: at(2, ContainerMetadataMessage),
      labels: at(3, textMap),
      annotations: at(4, textMap),
    }),
  ),
  cpu: at(2, message({ timestamp: at(1, time), usageCoreNanoSeconds: at(2, wrappedCounter) })),
  memory: at(
    3,
    message({
      timestamp: at(1, time),
      workingSetBytes: at(2, wrappedCounter),
      usageBytes: at(4, wrappedCounter),
      rssBytes: at(5, wrappedCounter),
      pageFaults: at(6, wrappedCounter),
      majorPageFaults: at(7, wrappedCounter),
    }),
  ),
  writableLayer: at(4, FilesystemUsageMessage),
});
export const ContainerStatsResponse = message({ stats: at(1, ContainerStatsMessage) });
export const ListContainerStatsResponse = message({ stats: at(1, list(ContainerStatsMessage)) });

export const ContainerEventResponse = message({
  containerId: at(1, text),
  containerEventType: at(2, integer),
  createdAt: at(3, time),
  podSandboxStatus: at(4, PodSandboxStatusMessage),
});
