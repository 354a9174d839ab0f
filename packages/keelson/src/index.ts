// Entry point for programs that run a control plane of their own: the plane and its options, and all exports of
// @keelson/core, with which programs declare kinds and use a plane.

/** @public */
export type { WebhookAuthorizerOptions } from '@keelson/access';
/** @public */
export type { CertificateOrder, CertificateSigner } from '@keelson/controllers';
/** @public */
export * from '@keelson/core';
/** @public */
export type { Clock, LogFields, Logger, Metrics } from '@keelson/core/runtime';
/** @public */
export type { AuthorizationMode, AuthorizationOptions } from './config/authorization-options.ts';
/** @public */
export type { ConnectionLimits } from './config/connection-limits.ts';
/** @public */
export type { FlowControlChoice } from './config/flow-control.ts';
/** @public */
export type { MemoryBudgets } from './config/memory-budgets.ts';
/** @public */
export type {
  AdapterChoice,
  HistoryChoice,
  HistoryWindow,
  ReadMode,
  StorageChoice,
  StorageRoute,
  StorageRouting,
  StoreChoice,
  StoreSettings,
  UrlChoice,
  WatchWindow,
} from './config/storage-choice.ts';
/** @public */
export type { ControllersOption } from './control-plane/controller-choice.ts';
/** @public */
export { type ControlPlane, createControlPlane } from './control-plane/create-control-plane.ts';
/** @public */
export type { ControlPlaneOptions } from './control-plane/plane-options.ts';
/** @public */
export type {
  AgentAccess,
  HandlerOptions,
  Listening,
  ListenOptions,
  PlaneHandler,
} from './server/listen-options.ts';
/** @public */
export type { AccessQuestion, PlaneAccess, RequestState, RouteOptions } from './server/request-state.ts';
/** @public */
export { type Credentials, credentialsSigner, loadCredentials } from './tls/credentials.ts';
/** @public */
export { type KubeconfigOptions, writeKubeconfig } from './tls/kubeconfig.ts';
