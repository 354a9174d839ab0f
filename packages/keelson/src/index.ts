export type { WebhookAuthorizerOptions } from '@keelson/access';
export type { CertificateOrder, CertificateSigner } from '@keelson/controllers';
export * from '@keelson/core';
export type { AuthorizationMode, AuthorizationOptions } from './config/authorization-options.ts';
export type { ConnectionLimits } from './config/connection-limits.ts';
export type { FlowControlChoice } from './config/flow-control.ts';
export type { MemoryBudgets } from './config/memory-budgets.ts';
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
export {
  type ControlPlane,
  type ControlPlaneOptions,
  createControlPlane,
} from './control-plane/create-control-plane.ts';
export type { AgentAccess, Listening, ListenOptions } from './server/listen-plane.ts';
export { type Credentials, credentialsSigner, loadCredentials } from './tls/credentials.ts';
export { type KubeconfigOptions, writeKubeconfig } from './tls/kubeconfig.ts';
