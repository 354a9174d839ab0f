export { Backoff, pause } from './backoff.ts';
export { Informer, type InformerHandlers, type InformerOptions, keyOf } from './informer.ts';
export { WorkQueue, type WorkQueueOptions, type WorkResult } from './work-queue.ts';
