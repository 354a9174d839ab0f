interface Balancer {
  ingress?: readonly { ip?: string; hostname?: string }[];
}

/** Addresses of a load balancer, sorted and without duplicates; empty without addresses. */
export function addressesText(balancer: Balancer | undefined): string {
  const addresses = (balancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || '').filter(Boolean);
  return [...new Set(addresses)].sort().join(',');
}
