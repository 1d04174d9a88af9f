// The simulated provider's kit: puts its card form into the element that `next_action.container_id` names.
const frame = document.createElement("iframe");
frame.src = new URL("provider", document.currentScript.src);
frame.title = "Simulated card provider";
frame.style = "width: 100%; height: 30rem; border: 0";
document.getElementById("sandbox-payment").replaceChildren(frame);
