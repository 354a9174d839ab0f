export type { ProcessEnd } from './remote-process.ts';
export type { ProcessTask } from './serve-process.ts';
export type { PortSource } from './spdy-ports.ts';
export type { StreamLimits } from './stream-limits.ts';
export { type ClientStream, SpdyClient } from './testing/spdy-client.ts';
export { type StreamUpgrade, UpgradeRefused } from './upgrade.ts';
export { upgradeToPorts } from './upgrade-ports.ts';
export { upgradeToProcess } from './upgrade-process.ts';
