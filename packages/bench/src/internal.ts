export { Connection } from './connection.ts';
export { colourOf, decades, logScale, Plot, short } from './plot.ts';
