export type { AgentWish, NodeDialer, Upstream, UpstreamTls } from './connect/node-dialer.ts';
export { createHttpApi, type HttpApi } from './create-http-api.ts';
export type { KoaApplication, KoaState } from './endpoints/koa-application.ts';
export type { Exchange } from './exchange.ts';
export {
  type Authenticate,
  type Authorization,
  type Authorize,
  anonymousUser,
  defaultLimits,
  type HealthCheck,
  type HttpApiOptions,
  type HttpLimits,
  mastersOnly,
  serverOptions,
  type VersionInfo,
} from './options.ts';
