export type { CertificateOrder, CertificateSigner } from '@keelson/controllers';
export * from '@keelson/core';
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
} from './config/storage-choice.ts';
export type { WatchWindow } from './config/watch-window.ts';
export {
  type ControlPlane,
  type ControlPlaneOptions,
  createControlPlane,
} from './control-plane/create-control-plane.ts';
export type { ConnectionLimits } from './server/connection-limits.ts';
export type { AgentAccess, Listening, ListenOptions } from './server/listen-plane.ts';
export { type Credentials, loadCredentials } from './tls/credentials.ts';
export { credentialsSigner } from './tls/credentials-signer.ts';
export { type KubeconfigOptions, writeKubeconfig } from './tls/kubeconfig.ts';
