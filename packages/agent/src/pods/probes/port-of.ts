import type { Container } from '@keelson/kinds';

/** Resolves a port that may be the name of one of the container's ports. @throws Error when there is no such port */
export function portOf(port: number | string, container: Container): number {
  const number = typeof port === 'number' ? port : /^\d+$/.test(port) ? Number(port) : namedPort(port, container);
  if (number < 1 || number > 65_535) throw new Error(`invalid port number: ${number}`);
  return number;
}

function namedPort(name: string, container: Container): number {
  const found = container.ports?.find((port) => port.name === name);
  if (found === undefined) throw new Error(`couldn't find port: ${name} in container ${container.name}`);
  return found.containerPort;
}
