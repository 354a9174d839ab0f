import { always, type Infer, optional, type Schema, s } from '@keelson/core';

const podDNSConfigOption = s.message('k8s.io.api.core.v1.PodDNSConfigOption', 'One option of the resolver.', {
  name: optional(1, s.string(), 'Name of the option.'),
  value: optional(2, s.string(), 'Value of the option.', { presence: true }),
});
export interface PodDNSConfigOption extends Infer<typeof podDNSConfigOption> {}
export const PodDNSConfigOptionSchema: Schema<PodDNSConfigOption> = podDNSConfigOption;

const podDNSConfig = s.message(
  'k8s.io.api.core.v1.PodDNSConfig',
  'Resolver settings of a pod, merged with those of its dnsPolicy.',
  {
    nameservers: optional(1, s.list(s.string(), { listType: 'atomic' }), 'Addresses of name servers.'),
    searches: optional(2, s.list(s.string(), { listType: 'atomic' }), 'Search domains.'),
    options: optional(3, s.list(PodDNSConfigOptionSchema, { listType: 'atomic' }), 'Resolver options.'),
  },
);
export interface PodDNSConfig extends Infer<typeof podDNSConfig> {}
export const PodDNSConfigSchema: Schema<PodDNSConfig> = podDNSConfig;

const hostAlias = s.message('k8s.io.api.core.v1.HostAlias', "Names for an address in the pod's hosts file.", {
  ip: always(1, s.string(), 'The address.'),
  hostnames: optional(2, s.list(s.string(), { listType: 'atomic' }), 'Names of the address.'),
});
export interface HostAlias extends Infer<typeof hostAlias> {}
export const HostAliasSchema: Schema<HostAlias> = hostAlias;
