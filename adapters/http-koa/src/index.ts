export { serveWithoutUpgrade } from './connect/upgrade-requests.ts';
export { createHttpApi, type HttpApi } from './create-http-api.ts';
export type { AggregatedApis, AggregatedServer, AggregatedVersion } from './exchange/aggregated-apis.ts';
export type { Exchange } from './exchange/exchange.ts';
export { requireAllowed } from './exchange/filters.ts';
export {
  defaultFlowControl,
  type FlowControlOptions,
  type FlowRule,
  type FlowRules,
  type FlowSchema,
  type PriorityLevel,
  type RuledFlowSchema,
} from './exchange/flow-options.ts';
export { http2ServerOptions } from './exchange/http2-messages.ts';
export type { KoaContext, KoaMiddleware, KoaState } from './exchange/koa-types.ts';
export type { AgentDialOptions, NodeDialer, Upstream, UpstreamTls } from './exchange/options.ts';
export {
  type Authenticate,
  type Authorization,
  type Authorize,
  anonymousUser,
  defaultHttpBudgets,
  defaultLimits,
  type HealthCheck,
  type HttpApiOptions,
  type HttpBudgets,
  type HttpLimits,
  mastersOnly,
  type OwnRoutes,
  type RouteSource,
  serverOptions,
  type VersionInfo,
} from './exchange/options.ts';
