import type { StreamRequest } from '@keelson/container-runtime';
import type { ContainerAddress, PodAddress } from '../base/contracts/pod-streams.ts';
import { HttpProblem } from './http/request.ts';

/** `/{first}/{namespace}/{pod}[/{uid}]/{container}`. @throws HttpProblem 400 */
export function containerOf(path: readonly string[]): ContainerAddress {
  const [first, namespace = '', pod = '', ...rest] = path;
  const container = rest.pop() ?? '';
  const [uid] = rest;
  if (container === '' || rest.length > 1)
    throw new HttpProblem(
      400,
      `the path must be /${first}/{namespace}/{pod}/{container} or /${first}/{namespace}/{pod}/{uid}/{container}`,
    );
  return { namespace, pod, uid, container };
}

/** `/{first}/{namespace}/{pod}[/{uid}]`. @throws HttpProblem 400 */
export function podOf(path: readonly string[]): PodAddress {
  const [first, namespace = '', pod = '', uid, ...rest] = path;
  if (pod === '' || rest.length > 0)
    throw new HttpProblem(400, `the path must be /${first}/{namespace}/{pod} or /${first}/{namespace}/{pod}/{uid}`);
  return { namespace, pod, uid };
}

/**
 * The streams that `input`, `output`, `error` and `tty` request. A terminal has one output for both.
 * @throws HttpProblem 400
 */
export function streamRequestOf(query: URLSearchParams): StreamRequest {
  const asked = (name: string) => query.get(name) === '1' || query.get(name) === 'true';
  const tty = asked('tty');
  const request = { stdin: asked('input'), stdout: asked('output'), stderr: asked('error') && !tty, tty };
  if (!request.stdin && !request.stdout && !request.stderr)
    throw new HttpProblem(400, 'you must specify at least 1 of input, output, error');
  return request;
}

const highestPort = 65_535;
/** Limited by the channel number in the first byte of a message. */
const maxPorts = 100;

/**
 * The ports of a WebSocket that names them in `port` or `ports`, several times or with commas.
 * @throws HttpProblem 400
 */
export function portsOf(query: URLSearchParams): number[] {
  const words = [...query.getAll('port'), ...query.getAll('ports')].flatMap((text) => text.split(','));
  if (words.length === 0) throw new HttpProblem(400, 'the query must name a port: ?port=8080');
  if (words.length > maxPorts)
    throw new HttpProblem(400, `at most ${maxPorts} ports are forwarded at once, not ${words.length}`);
  return words.map((word) => {
    const port = /^\d{1,5}$/.test(word) ? Number(word) : 0;
    if (port < 1 || port > highestPort)
      throw new HttpProblem(400, `port must be 1 to ${highestPort}, not ${JSON.stringify(word)}`);
    return port;
  });
}
