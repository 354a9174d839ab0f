// Entry point for clients of an API server: requests, local copies, elections, kubeconfig files.

/** @public */
export {
  ApiEventRecorder,
  type ApiEventRecorderOptions,
  type EventRecorder,
  type EventSource,
  type EventSubject,
  noEvents,
} from './events/event-recorder.ts';
/** @public */
export { isTooLargeResourceVersion, missingIsUndefined } from './http/answer-error.ts';
/** @public */
export { ConnectionError, ConnectionErrorCode, isConnectionError } from './http/connection-error.ts';
/** @public */
export type { HttpClientOptions, Impersonation } from './http/http-client-options.ts';
/** @public */
export { createHttpClient, type HttpApiClient } from './http/http-resource-client.ts';
/** @public */
export {
  type DocumentRequest,
  exchangeDocument,
  type JsonRequest,
  JsonRequestError,
  requestJson,
} from './http/json-request.ts';
/** @public */
export { createInProcessClient, type InProcessClientOptions } from './in-process-client.ts';
/** @public */
export { Informer, type InformerHandlers, type InformerOptions, isOlderVersion, keyOf } from './informer.ts';
/** @public */
export { type KubeconfigAccess, kubeconfigAccess } from './kubeconfig/client-options.ts';
/** @public */
export { type InClusterOptions, inClusterAccess, serviceAccountDirectory } from './kubeconfig/in-cluster.ts';
/** @public */
export {
  type Kubeconfig,
  type KubeconfigCluster,
  type KubeconfigContext,
  type KubeconfigUser,
  mergeKubeconfigs,
  parseKubeconfig,
} from './kubeconfig/kubeconfig.ts';
/** @public */
export { KubeconfigError } from './kubeconfig/kubeconfig-error.ts';
/** @public */
export { type KubeconfigPlaces, loadKubeconfig } from './kubeconfig/load-kubeconfig.ts';
/** @public */
export { LeaderElector, type LeaderElectorOptions } from './leader-election/leader-elector.ts';
/** @public */
export {
  byControllerUid,
  byLabel,
  byNamespace,
  byOwnerUid,
  createLister,
  type IndexFunction,
  type Lister,
} from './lister.ts';
/** @public */
export { Backoff, TokenBucket } from './retry/rate-limits.ts';
/** @public */
export { WorkQueue, type WorkQueueOptions, type WorkResult } from './work-queue.ts';
