import { pipeline } from 'node:stream/promises';
import { parseInstant } from '@keelson/core';
import { parseBool } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import type { LogRequest, PodQueries } from '../base/contracts/pod-queries.ts';
import { HttpProblem } from './http/request.ts';
import type { Route } from './http/route.ts';
import { podProblem } from './pod-problem.ts';

function flag(query: URLSearchParams, name: string): boolean {
  const text = query.get(name);
  if (text === null) return false;
  const value = text === '' ? true : parseBool(text);
  if (value === undefined) throw new HttpProblem(400, `${name} must be true or false, not ${JSON.stringify(text)}`);
  return value;
}

function count(query: URLSearchParams, name: string, least: number): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  if (!/^-?\d{1,15}$/.test(text))
    throw new HttpProblem(400, `${name} must be a whole number, not ${JSON.stringify(text)}`);
  const value = Number(text);
  if (value < least) throw new HttpProblem(422, `${name} must be at least ${least}, not ${text}`);
  return value;
}

function tail(query: URLSearchParams): number | undefined {
  const name = query.has('tailLines') ? 'tailLines' : 'tail';
  return query.get(name) === 'all' ? undefined : count(query, name, 0);
}

function since(query: URLSearchParams, nowMs: number): number | undefined {
  const seconds = count(query, 'sinceSeconds', 1);
  const time = query.get('sinceTime');
  if (time === null || time === '') return seconds === undefined ? undefined : nowMs - seconds * 1000;
  if (seconds !== undefined) throw new HttpProblem(422, 'sinceSeconds and sinceTime exclude each other');
  const instant = parseInstant(time);
  if (instant === undefined)
    throw new HttpProblem(400, `sinceTime must be an RFC 3339 time, not ${JSON.stringify(time)}`);
  return instant.seconds * 1000 + Math.floor(instant.nanos / 1_000_000);
}

/**
 * Parses the query of a log request. @throws HttpProblem 400 for a value that cannot be parsed, 422 for an invalid one
 */
export function parseLogQuery(
  query: URLSearchParams,
  nowMs: number,
): Omit<LogRequest, 'namespace' | 'pod' | 'container' | 'signal'> {
  return {
    follow: flag(query, 'follow'),
    previous: flag(query, 'previous'),
    timestamps: flag(query, 'timestamps'),
    tailLines: tail(query),
    sinceMs: since(query, nowMs),
    limitBytes: count(query, 'limitBytes', 1),
  };
}

function hasContainer({ spec }: Pod, name: string): boolean {
  return [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])].some(
    (one) => one.name === name,
  );
}

/** `/containerLogs/{namespace}/{pod}/{container}`: the output of a container, as a stream of plain text. */
export function logRoute(state: Pick<PodQueries, 'pods' | 'logs'>, clock: Clock): Route {
  return {
    first: 'containerLogs',
    methods: ['GET'],
    debug: true,
    async serve({ path, query, response, method }) {
      const [, namespace = '', name = '', container = '', ...rest] = path;
      if (container === '' || rest.length > 0)
        throw new HttpProblem(400, 'the path must be /containerLogs/{namespace}/{pod}/{container}');
      const wanted = parseLogQuery(query, clock.now());
      const pod = state.pods().find(({ metadata }) => metadata?.namespace === namespace && metadata.name === name);
      if (pod === undefined) throw new HttpProblem(404, `pod ${JSON.stringify(name)} does not exist`);
      if (!hasContainer(pod, container)) {
        throw new HttpProblem(404, `container ${JSON.stringify(container)} not found in pod ${JSON.stringify(name)}`);
      }
      const gone = new AbortController();
      response.once('close', () => gone.abort());
      let log: AsyncIterable<Buffer>;
      try {
        log = await state.logs({ namespace, pod: name, container, ...wanted, signal: gone.signal });
      } catch (error) {
        throw podProblem(error);
      }
      response.writeHead(200, { 'Content-Type': 'text/plain', 'X-Content-Type-Options': 'nosniff' });
      // A client that follows a silent container learns that it was found.
      response.flushHeaders();
      if (method === 'HEAD') {
        response.end();
        return;
      }
      try {
        await pipeline(log, response);
      } catch (error) {
        if (!gone.signal.aborted) throw error;
      }
    },
  };
}
