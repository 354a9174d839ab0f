import { isRuntimeError } from '@keelson/container-runtime';
import { PodQueryError } from '../base/contracts/pod-queries.ts';
import type { PodStreams } from '../base/contracts/pod-streams.ts';
import { requireKnownCaller } from './access/known-caller.ts';
import { HttpProblem, sendText } from './http/request.ts';
import type { Route } from './http/route.ts';
import { podProblem } from './pod-problem.ts';
import { containerOf } from './stream-query.ts';

/**
 * `/run/{namespace}/{pod}[/{uid}]/{container}?cmd=`: runs a command, split at spaces, and answers with its output.
 */
export function runRoute(streams: Pick<PodStreams, 'run'>): Route {
  return {
    first: 'run',
    methods: ['POST'],
    debug: true,
    async serve(request) {
      requireKnownCaller(request, 'commands are run');
      const { path, query, response } = request;
      const container = containerOf(path);
      const command = (query.get('cmd') ?? '').split(' ').filter((word) => word !== '');
      if (command.length === 0) throw new HttpProblem(400, 'the query must name a command: ?cmd=ls%20/');
      const gone = new AbortController();
      response.once('close', () => gone.abort());
      try {
        const { exitCode, stdout, stderr } = await streams.run(container, command, gone.signal);
        const output = Buffer.concat([stdout, stderr]).toString();
        if (exitCode !== 0)
          throw new HttpProblem(500, `command "${command.join(' ')}" exited with ${exitCode}: ${output}`);
        sendText(response, output);
      } catch (error) {
        if (error instanceof PodQueryError) throw podProblem(error);
        if (isRuntimeError(error)) throw new HttpProblem(500, `error executing command in container: ${error.message}`);
        throw error;
      }
    },
  };
}
