interface Balancer {
  ingress?: readonly { ip?: string; hostname?: string }[];
}

/** The points at which a load balancer takes traffic, each once, sorted; '' when there are none. */
export function addressesText(balancer: Balancer | undefined): string {
  const addresses = (balancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || '').filter(Boolean);
  return [...new Set(addresses)].sort().join(',');
}
