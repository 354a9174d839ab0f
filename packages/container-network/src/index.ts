export { NetworkError, type PluginFailure } from './network-error.ts';
export type { Bandwidth, NetworkAttachment, NetworkPlugin, NetworkRequest, NetworkStatus } from './network-plugin.ts';
export { networkRequest } from './network-request.ts';
