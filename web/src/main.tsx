import { render } from "preact";

import { App } from "./app";
import { start } from "./state";
import "./style.css";

const root = document.getElementById("app");
if (root) {
  start();
  render(<App />, root);
}
