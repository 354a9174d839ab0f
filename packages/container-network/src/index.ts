export type {
  Bandwidth,
  NetworkAttachment,
  NetworkPlugin,
  NetworkRequest,
  NetworkStatus,
} from '@keelson/container-runtime';
export type { BridgeConfig, HairpinMode } from './bridge/bridge-document.ts';
export { type BridgeNetworkOptions, createBridgeNetwork } from './bridge/bridge-network.ts';
export type { PluginHost } from './cni/attacher.ts';
export { type CniNetworkOptions, createCniNetwork } from './cni/cni-network.ts';
export { NetworkError, type PluginFailure } from './network-error.ts';
export { networkRequest } from './network-request.ts';
