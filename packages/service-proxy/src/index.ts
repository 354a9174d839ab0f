/** @experimental */
export { DnsServer, type DnsServerOptions } from './dns/dns-server.ts';
/** @experimental */
export { IngressProxy, type IngressProxyOptions } from './ingress/ingress-proxy.ts';
/** @experimental */
export { ServiceProxy, type ServiceProxyOptions } from './proxy/service-proxy.ts';
/** @experimental */
export { type KnownService, ServiceTable, type ServiceTableOptions } from './routes/service-table.ts';
/** @experimental */
export { type RuleHost, ServiceRules, type ServiceRulesOptions } from './rules/service-rules.ts';
