import { pipeline } from 'node:stream/promises';
import type { Clock } from '@keelson/core';
import type { Pod } from '@keelson/kinds';
import type { PodQueries } from '../base/contracts/pod-queries.ts';
import { HttpProblem } from './http/request.ts';
import type { Route } from './http/route.ts';
import { parseLogQuery } from './log-query.ts';
import { podProblem } from './pod-problem.ts';

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
