import type { Service } from '@keelson/kinds';

/**
 * Variables by which containers find the services of their namespace: `<NAME>_SERVICE_HOST`, `..._PORT` and the older
 * forms per port.
 */
export function serviceVariables(services: readonly Service[]): Map<string, string> {
  const variables = new Map<string, string>();
  for (const { metadata, spec } of services) {
    const ip = spec?.clusterIP;
    const [first] = spec?.ports ?? [];
    if (!ip || ip === 'None' || first === undefined) continue;
    const name = variableName(metadata?.name ?? '');
    const host = ip.includes(':') ? `[${ip}]` : ip;
    variables.set(`${name}_SERVICE_HOST`, ip);
    variables.set(`${name}_SERVICE_PORT`, String(first.port));
    for (const port of spec?.ports ?? [])
      if (port.name) variables.set(`${name}_SERVICE_PORT_${variableName(port.name)}`, String(port.port));
    const url = (port: typeof first) => `${(port.protocol ?? 'TCP').toLowerCase()}://${host}:${port.port}`;
    variables.set(`${name}_PORT`, url(first));
    for (const port of spec?.ports ?? []) {
      const prefix = `${name}_PORT_${port.port}_${port.protocol ?? 'TCP'}`;
      variables.set(prefix, url(port));
      variables.set(`${prefix}_PROTO`, (port.protocol ?? 'TCP').toLowerCase());
      variables.set(`${prefix}_PORT`, String(port.port));
      variables.set(`${prefix}_ADDR`, ip);
    }
  }
  return variables;
}

function variableName(name: string): string {
  return name.toUpperCase().replaceAll('-', '_').replaceAll('.', '_');
}
