import { addressWarnings, cidrWarnings } from '../../../validation/address-warnings.ts';
import type { Service } from '../schema/index.ts';
import { topologyHints, topologyMode } from './validate-service.ts';

/** Warnings about fields that have no effect in this type of service, and about addresses in unusual forms. */
export function serviceWarnings({ metadata, spec }: Service): string[] {
  const { clusterIP, clusterIPs = [], externalIPs = [], loadBalancerIP, loadBalancerSourceRanges = [], type } = spec;
  const warnings: string[] = [];
  if (metadata?.annotations?.[topologyHints] !== undefined) {
    warnings.push(`annotation ${topologyHints} is deprecated, please use ${topologyMode} instead`);
  }
  if (clusterIP !== 'None') {
    for (const [i, address] of clusterIPs.entries())
      warnings.push(...addressWarnings(address, `spec.clusterIPs[${i}]`));
  } else if (type === 'ClusterIP') {
    if (loadBalancerIP) warnings.push('spec.loadBalancerIP is ignored for headless services');
    if (externalIPs.length > 0) warnings.push('spec.externalIPs is ignored for headless services');
    if (spec.sessionAffinity !== 'None') warnings.push('spec.SessionAffinity is ignored for headless services');
  }
  for (const [i, address] of externalIPs.entries())
    warnings.push(...addressWarnings(address, `spec.externalIPs[${i}]`));
  warnings.push(...addressWarnings(loadBalancerIP, 'spec.loadBalancerIP'));
  loadBalancerSourceRanges.forEach((range, i) => {
    warnings.push(...cidrWarnings(range, `spec.loadBalancerSourceRanges[${i}]`));
  });
  if (type === 'ExternalName' && externalIPs.length > 0) {
    warnings.push('spec.externalIPs is ignored when spec.type is "ExternalName"');
  }
  if (type !== 'ExternalName' && spec.externalName) {
    warnings.push('spec.externalName is ignored when spec.type is not "ExternalName"');
  }
  return warnings;
}
