export {
  ApiEventRecorder,
  type ApiEventRecorderOptions,
  type EventRecorder,
  type EventSource,
  type EventSubject,
  noEvents,
} from './events/event-recorder.ts';
export { isTooLargeResourceVersion, missingIsUndefined } from './http/answer-error.ts';
export { ConnectionError, ConnectionErrorCode, isConnectionError } from './http/connection-error.ts';
export type { HttpClientOptions, Impersonation } from './http/http-client-options.ts';
export { createHttpClient, type HttpApiClient } from './http/http-resource-client.ts';
export {
  type DocumentRequest,
  exchangeDocument,
  type JsonRequest,
  JsonRequestError,
  requestJson,
} from './http/json-request.ts';
export { createInProcessClient, type InProcessClientOptions } from './in-process-client.ts';
export { Informer, type InformerHandlers, type InformerOptions, isOlderVersion, keyOf } from './informer.ts';
export { type KubeconfigAccess, kubeconfigAccess } from './kubeconfig/client-options.ts';
export { type InClusterOptions, inClusterAccess, serviceAccountDirectory } from './kubeconfig/in-cluster.ts';
export {
  type Kubeconfig,
  type KubeconfigCluster,
  type KubeconfigContext,
  type KubeconfigUser,
  mergeKubeconfigs,
  parseKubeconfig,
} from './kubeconfig/kubeconfig.ts';
export { KubeconfigError } from './kubeconfig/kubeconfig-error.ts';
export { type KubeconfigPlaces, loadKubeconfig } from './kubeconfig/load-kubeconfig.ts';
export { LeaderElector, type LeaderElectorOptions } from './leader-election/leader-elector.ts';
export {
  byControllerUid,
  byLabel,
  byNamespace,
  byOwnerUid,
  createLister,
  type IndexFunction,
  type Lister,
} from './lister.ts';
export { Backoff, TokenBucket } from './retry/rate-limits.ts';
export { WorkQueue, type WorkQueueOptions, type WorkResult } from './work-queue.ts';
