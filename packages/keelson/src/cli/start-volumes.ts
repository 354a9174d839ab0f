import { join } from 'node:path';
import { ControllerManager } from '@keelson/controller-kit';
import { isStatusError, StatusReason } from '@keelson/core';
import { systemClock } from '@keelson/core/runtime';
import { StorageClass } from '@keelson/kinds';
import { createPinoLogger } from '@keelson/pino-logger';
import type { ServerOptions } from '../config/options.ts';
import { directoryProvisioner, provisionerName } from '../nodes/directory-volumes.ts';
import { fakeNodeName } from '../nodes/fake-nodes.ts';
import type { RunningServer } from './serve.ts';
import { type NodeCounts, nodeName } from './start-node.ts';

/** The default storage class, for claims that name no class. */
const storageClass: StorageClass = {
  metadata: { name: 'keelson', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  provisioner: provisionerName,
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'WaitForFirstConsumer',
};

/**
 * Provides volumes for the pods of this process: directories in the data directory. The default storage class is
 * created when no class of its name exists.
 */
export async function startVolumes(
  { data, logLevel }: Pick<ServerOptions, 'data' | 'logLevel'>,
  { nodes, fakeNodes }: NodeCounts,
  { api: client, metrics }: Pick<RunningServer, 'api' | 'metrics'>,
): Promise<{ stop(): Promise<void> } | undefined> {
  if (nodes + fakeNodes === 0) return undefined;
  const logger = createPinoLogger(logLevel).child({ component: 'volumes' });
  // Nodes of this process share the directory; fake ones have no files.
  const nodeNames = [
    ...Array.from({ length: nodes }, (_, index) => nodeName(index)),
    ...Array.from({ length: fakeNodes }, (_, index) => fakeNodeName(index)),
  ];
  const controllers = directoryProvisioner({ directory: join(data, 'volumes'), nodeNames });
  const manager = new ControllerManager({ client, clock: systemClock, logger, metrics, controllers });
  try {
    await client.resource(StorageClass).create(storageClass);
  } catch (err) {
    if (!isStatusError(err, StatusReason.AlreadyExists))
      logger.warn('the default storage class was not created', { err });
  }
  await manager.start();
  return manager;
}
