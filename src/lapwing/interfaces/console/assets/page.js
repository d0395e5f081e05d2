// Downloads the chart as PNG, which the browser draws from the SVG file.
for (const link of document.querySelectorAll("a[data-png]")) {
  link.hidden = false;
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = image.naturalWidth * 2;
      canvas.height = image.naturalHeight * 2;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => {
        const save = document.createElement("a");
        save.href = URL.createObjectURL(blob);
        save.download = "answer.png";
        save.click();
        setTimeout(() => URL.revokeObjectURL(save.href), 10_000);
      }, "image/png");
    };
    image.src = link.dataset.png;
  });
}
