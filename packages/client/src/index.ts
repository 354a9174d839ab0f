export { Backoff, pause } from './backoff.ts';
export { createInProcessClient, type InProcessClientOptions } from './in-process-client.ts';
export { Informer, type InformerHandlers, type InformerOptions, keyOf } from './informer.ts';
export { WorkQueue, type WorkQueueOptions, type WorkResult } from './work-queue.ts';
